//! Prints the report as text.

use indicatif::{HumanBytes, HumanCount};
use lapwing_engine::fit::{Fit, MemoryNeed, ModelHeader};

use super::report::{FitReport, MemoryReport, Numbers, OnDevices, OtherFile};
use crate::cli::table::{Align, table};
use crate::cli::visible::{one_line, visible};

/// The verdict, the model, a table of the devices, where the times come from, and the other files of the repository.
pub(super) fn of(report: &FitReport) -> String {
    let mut text = format!("{}\n", visible(&report.verdict));
    text.push_str(&about(report));
    if report.supported {
        text.push('\n');
        text.push_str(&devices(report));
        text.push_str(&sources(report));
    }
    if report.repository.len() > 1 {
        text.push('\n');
        text.push_str(&repository(&report.repository, report.supported));
    }
    if let Some(why) = &report.repository_unknown {
        text.push_str(&format!(
            "the other files of the repository are not known: {}\n",
            visible(why)
        ));
    }
    text
}

/// One sentence: whether it runs here, or what would.
pub(super) fn verdict(header: &ModelHeader, fit: &Fit, repository: &[OtherFile]) -> String {
    let file = header.files.first().map_or(&*header.name, |file| quant_of(file).unwrap_or(file));
    let Some(need) = fit.tightest() else { return String::new() };
    let (needed, free) = (needed(need, fit), free(need));
    let speed = fit.tokens_per_second().map_or(String::new(), |speed| {
        format!("; about {} tokens/s on {}", rate(speed), fit.devices.join("+"))
    });
    let smaller = || {
        let fitting = repository.iter().filter(|other| other.fits == Some(true) && !other.read);
        let Some(largest) = fitting.max_by_key(|other| other.bytes) else { return String::new() };
        format!("; a file in {} would", quant_of(&largest.file).unwrap_or(&largest.file))
    };
    if fit.runs_from_disk() {
        let times = need.free.map_or(0.0, |free| need.weights as f64 / free as f64);
        return format!(
            "This model runs here from the disk, at its speed: {file} {needed}, {free}; the weights are {times:.1} times \
             that, and are read when they are used{}",
            smaller()
        );
    }
    match (fit.fits(), fit.largest_context) {
        (Some(true), _) => format!("This model runs here: {file} {needed}, {free}{speed}"),
        (None, _) => format!(
            "This model is supported: {file} {needed}; this system does not say how much memory is free{speed}"
        ),
        (Some(false), Some(context)) if context > 0 => format!(
            "This model runs here with a context of at most {context} tokens: {file} {needed}, {free}{speed}"
        ),
        (Some(false), _) => {
            format!("This model does not fit: {file} {needed}, {free}{}", smaller())
        }
    }
}

fn needed(need: &MemoryNeed, fit: &Fit) -> String {
    format!("needs {} with a context of {} tokens", HumanBytes(need.needed()), fit.context)
}

fn free(need: &MemoryNeed) -> String {
    let free = need.free.map_or_else(|| "?".to_owned(), |free| HumanBytes(free).to_string());
    match &need.device {
        None => format!("{free} are free"),
        Some(device) => format!("{free} of {device} may be used"),
    }
}

/// The quantisation that a file's name states, such as `Q4_K_M`.
pub(super) fn quant_of(file: &str) -> Option<&str> {
    let is_quant = |word: &&str| {
        let upper = word.to_ascii_uppercase();
        let digits = ["IQ", "TQ", "MXFP", "NVFP", "BF", "Q", "F"];
        digits.iter().any(|start| {
            let rest = upper.strip_prefix(start);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    file.rsplit(['/', '-', '.']).find(is_quant)
}

/// Tokens per second with three digits.
fn rate(speed: f64) -> String {
    match speed {
        speed if speed >= 100.0 => format!("{speed:.0}"),
        speed if speed >= 10.0 => format!("{speed:.1}"),
        speed => format!("{speed:.2}"),
    }
}

fn about(report: &FitReport) -> String {
    let mut parts = vec![one_line(&report.model)];
    parts.extend(report.bytes.map(|bytes| HumanBytes(bytes).to_string()));
    if report.files.len() > 1 {
        parts.push(format!("{} files", report.files.len()));
    }
    parts.extend(report.parameters.map(|count| format!("{} parameters", HumanCount(count))));
    parts.extend(
        report.architecture.as_deref().map(|arch| format!("architecture {}", one_line(arch))),
    );
    let formats: Vec<&str> = report.formats.iter().map(|format| &*format.format).collect();
    if !formats.is_empty() {
        parts.push(formats.join(" and "));
    }
    format!("{}\n", parts.join(", "))
}

/// A line for each set of devices, and one for each further memory of it.
fn devices(report: &FitReport) -> String {
    let first = report.devices.iter().find(|on| on.error.is_none());
    let Some(first) = first else { return failures(report) };
    let prompt = first.numbers.prompt_tokens.unwrap_or_default();
    let context = first.numbers.context.unwrap_or_default();
    let (prompt, context) = (format!("prompt of {prompt}"), format!("at {context}"));
    let header = [
        ("devices", Align::Left),
        ("weights", Align::Right),
        ("KV cache", Align::Right),
        ("buffers", Align::Right),
        ("needed", Align::Right),
        ("free", Align::Right),
        ("fits", Align::Left),
        ("largest context", Align::Right),
        (prompt.as_str(), Align::Right),
        ("tokens/s", Align::Right),
        (context.as_str(), Align::Right),
    ];
    let rows = report.devices.iter().filter(|on| on.error.is_none()).flat_map(rows);
    format!("{}{}", table(header, rows.collect()), failures(report))
}

fn failures(report: &FitReport) -> String {
    let failed = report.devices.iter().filter_map(|on| Some((&on.devices, on.error.as_ref()?)));
    failed.map(|(devices, why)| format!("{}: {}\n", one_line(devices), visible(why))).collect()
}

fn rows(on: &OnDevices) -> Vec<[String; 11]> {
    let numbers = &on.numbers;
    let several = numbers.memory.len() > 1;
    let row = |(at, memory): (usize, &MemoryReport)| {
        let MemoryReport { device, weights, kv, buffers, needed, free } = memory;
        let name = match (at, device) {
            (0, _) if several => format!("{}: memory", on.devices),
            (0, _) => on.devices.clone(),
            (_, device) => format!("  {}", device.as_deref().unwrap_or_default()),
        };
        let bytes = |bytes: u64| HumanBytes(bytes).to_string();
        let fits = match free.map(|free| *needed <= free) {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        let [largest, prompt, speed, at_context] =
            if at == 0 { times(numbers) } else { Default::default() };
        [
            name,
            bytes(*weights),
            bytes(*kv),
            bytes(*buffers),
            bytes(*needed),
            free.map_or_else(|| "?".to_owned(), bytes),
            fits.to_owned(),
            largest,
            prompt,
            speed,
            at_context,
        ]
    };
    numbers.memory.iter().enumerate().map(row).collect()
}

/// Largest context, time of the prompt, and tokens per second.
fn times(numbers: &Numbers) -> [String; 4] {
    let none = || "–".to_owned();
    let seconds = numbers.first_token_ms.map(|ms| match ms {
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    });
    let largest = numbers.largest_context.map(|largest| match largest {
        0 => none(),
        largest => largest.to_string(),
    });
    [
        largest.unwrap_or_else(|| "?".to_owned()),
        seconds.unwrap_or_else(none),
        numbers.tokens_per_second.map_or_else(none, rate),
        numbers.tokens_per_second_at_context.map_or_else(none, rate),
    ]
}

/// Where the times come from, and notes, each once.
fn sources(report: &FitReport) -> String {
    let done: Vec<&OnDevices> = report.devices.iter().filter(|on| on.error.is_none()).collect();
    let mut text = String::new();
    if let (Some(kv), Some(trained)) =
        (report.kv, done.first().and_then(|on| on.numbers.trained_context))
    {
        text.push_str(&format!(
            "KV cache of one conversation in {kv}; the model was trained with {trained} tokens\n"
        ));
    }
    let several = done.len() > 1;
    for on in &done {
        let of = if several { format!(" on {}", one_line(&on.devices)) } else { String::new() };
        if let Some(rates) = &on.numbers.rates {
            text.push_str(&format!("times{of}: {}\n", visible(rates)));
        }
        for note in &on.numbers.notes {
            text.push_str(&format!("note{of}: {}\n", visible(note)));
        }
    }
    text
}

/// The models of the repository.
fn repository(all: &[OtherFile], is_supported: bool) -> String {
    let rows = all.iter().map(|other| {
        let about = if other.read { "" } else { "≈ " };
        let parts =
            if other.parts > 1 { format!(" ({} files)", other.parts) } else { String::new() };
        [
            format!("{}{parts}", other.file),
            other.bytes.map_or_else(|| "?".to_owned(), |bytes| HumanBytes(bytes).to_string()),
            match other.fits {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => "?".to_owned(),
            },
            other
                .tokens_per_second
                .map_or_else(|| "–".to_owned(), |speed| format!("{about}{}", rate(speed))),
        ]
    });
    let header = [
        ("file of the repository", Align::Left),
        ("size", Align::Right),
        ("fits", Align::Left),
        ("tokens/s", Align::Right),
    ];
    let table = table(header, rows.collect());
    match is_supported {
        true => format!(
            "{table}≈: estimated from the size; --fit with that file measures its formats\n"
        ),
        false => table,
    }
}

#[cfg(test)]
mod tests {
    use super::{quant_of, rate};

    #[test]
    fn the_quantisation_is_read_from_usual_names_of_files() {
        for (file, quant) in [
            ("Qwen3-0.6B-Q8_0.gguf", Some("Q8_0")),
            ("sub/a.b-Q4_K_M.gguf", Some("Q4_K_M")),
            ("gpt-oss-20b-mxfp4.gguf", Some("mxfp4")),
            ("x-UD-IQ2_XXS-00001-of-00003.gguf", Some("IQ2_XXS")),
            ("model.F16.gguf", Some("F16")),
            ("Falcon3-7B.gguf", None),
            ("model.gguf", None),
        ] {
            assert_eq!(quant_of(file), quant, "{file}");
        }
    }

    #[test]
    fn rates_have_three_digits() {
        assert_eq!([1.234, 12.34, 123.4].map(rate), ["1.23", "12.3", "123"]);
    }
}
