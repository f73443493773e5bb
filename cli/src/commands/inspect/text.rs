//! Prints the report as text.

use indicatif::{HumanBytes, HumanCount};

use super::layers::LayerGroup;
use super::report::{Entry, Experts, HyperParameters, Report, Tensor};
use crate::cli::table::{Align, table};
use crate::cli::visible::{one_line, visible};

/// The report: a summary, the placement, and then the contents; with `full` every tensor.
pub(super) fn of(report: &Report, full: bool) -> String {
    let mut text = String::new();
    for path in &report.paths {
        text.push_str(&format!("{}\n", visible(path)));
    }
    text.push_str(&format!(
        "{}, {} parameters, architecture {}\n",
        HumanBytes(report.bytes),
        HumanCount(report.parameters),
        visible(report.architecture.as_deref().unwrap_or("unknown")),
    ));
    if let Some(reason) = &report.cannot_run {
        text.push_str(&format!("cannot run: {}\n", visible(reason)));
    }
    if let Some(parameters) = &report.hyper_parameters {
        text.push_str(&hyper_parameters(parameters));
    }
    if let Some(bytes) = report.kv_bytes_per_token {
        text.push_str(&format!("KV cache: {} per token", HumanBytes(bytes as u64)));
        if let Some(states @ 1..) = report.state_bytes_per_sequence {
            let bytes = HumanBytes(states as u64);
            text.push_str(&format!(", and {bytes} of states for each sequence"));
        }
        text.push('\n');
    }
    if let Some(requant) = &report.requant {
        text.push_str(&format!("{}\n", visible(&requant.text)));
    }
    if let Some(placement) = &report.placement_text {
        text.push_str(&heading("placement"));
        text.push_str(placement);
    }
    text.push_str(&heading("formats"));
    text.push_str(&formats(report));
    text.push_str(&heading(&format!("tensors ({})", report.tensors.len())));
    text.push_str(&if full { tensors(report) } else { grouped(report) });
    text.push_str(&heading("metadata"));
    for (key, entry) in &report.metadata {
        text.push_str(&format!("{} = {}\n", one_line(key), value(entry)));
    }
    text
}

fn heading(title: &str) -> String {
    let bold = anstyle::Style::new().bold();
    format!("\n{bold}{title}{bold:#}\n")
}

fn value(entry: &Entry) -> String {
    let shown = match &entry.value {
        serde_json::Value::String(text) => format!("'{}'", one_line(text)),
        other => one_line(&other.to_string()),
    };
    match (entry.length, entry.value.is_array()) {
        (Some(length), true) => {
            format!(
                "{}, …] ({})",
                shown.trim_end_matches(']'),
                one_line(&entry.kind).replace(&format!("array of {length}"), &length.to_string())
            )
        }
        (Some(length), false) => format!("{shown} ({length} characters)"),
        (None, _) => shown,
    }
}

/// A line for each shape of tensor that the layers repeat, and for each tensor outside the layers.
fn grouped(report: &Report) -> String {
    let rows = LayerGroup::of(&report.tensors).into_iter().map(|group| {
        [
            group.name(),
            group.count().to_string(),
            shape(group.first),
            group.first.format.clone(),
            HumanBytes(group.bytes).to_string(),
        ]
    });
    let header = [
        ("name", Align::Left),
        ("count", Align::Right),
        ("shape of each", Align::Right),
        ("format", Align::Left),
        ("size of all", Align::Right),
    ];
    table(header, rows.collect())
}

fn shape(tensor: &Tensor) -> String {
    let dims: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
    dims.join(" × ")
}

fn tensors(report: &Report) -> String {
    let rows = report.tensors.iter().map(|tensor| {
        [
            tensor.name.clone(),
            shape(tensor),
            tensor.format.clone(),
            HumanBytes(tensor.bytes as u64).to_string(),
        ]
    });
    let header = [
        ("name", Align::Left),
        ("shape", Align::Right),
        ("format", Align::Left),
        ("size", Align::Right),
    ];
    table(header, rows.collect())
}

fn formats(report: &Report) -> String {
    let rows = report.formats.iter().map(|format| {
        [format.format.clone(), format.tensors.to_string(), HumanBytes(format.bytes).to_string()]
    });
    let header = [("format", Align::Left), ("tensors", Align::Right), ("size", Align::Right)];
    table(header, rows.collect())
}

fn hyper_parameters(p: &HyperParameters) -> String {
    let positions = match p.encoder {
        true => "each row sees all rows; positions from a table".to_owned(),
        false if p.rotated_layers == 0 => "no rotary embedding".to_owned(),
        false => format!(
            "rotary: {} values, base {}, scaling {}",
            p.rope_dims, p.rope_base, p.rope_scaling
        ),
    };
    let sizes = match (p.head_dim.to_string(), p.value_dim.to_string()) {
        (keys, values) if keys == values => format!("{keys} values each"),
        (keys, values) => format!("{keys} values in a key and {values} in a value"),
    };
    let mut text = format!(
        "layers {}, width {}, feed-forward width {}, vocabulary {}, trained context {}\n\
         attention: {} heads on {} KV heads, {sizes}; {positions}\n",
        p.layers, p.width, p.ffn_width, p.vocabulary, p.context, p.heads, p.kv_heads,
    );
    if let Some(Experts { count, used }) = &p.experts {
        text.push_str(&format!("experts: {count} in a layer, {used} for each row\n"));
    }
    if let Some(window) = p.window {
        text.push_str(&format!("sliding window of {window} tokens in some layers\n"));
    }
    for (what, cap) in [("attention scores", p.attention_cap), ("logits", p.logit_cap)] {
        if let Some(cap) = cap {
            text.push_str(&format!("{what} are soft-capped at {cap}\n"));
        }
    }
    if p.encoder {
        text.push_str("an encoder: it makes embeddings only (lapwing embed)\n");
        return text;
    }
    let template = if p.chat_template { "yes" } else { "none, the model continues text" };
    text.push_str(&format!("chat template: {template}\n"));
    text
}
