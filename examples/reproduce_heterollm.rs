//! Published numbers of HeteroLLM compared with simulated ones, on one page with plots.
//!
//! ```text
//! cargo run --release -p lapwing-examples --example reproduce_heterollm [PAGE.html]
//! ```

use lapwing::simulate::plot::{BarGroup, Bars, Cell, Lines, Page, Section, Series, Tone};
use lapwing::simulate::published::{Published, Role};
use lapwing::simulate::{ReproduceOptions, Reproduced, Reproduction, Runs, Scenario, Simulated};

/// Default path of the page.
const PAGE: &str = "target/reproduce_heterollm.html";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The paper's strategies, with their names there.
const NPU_ONLY: [(&str, &str); 3] =
    [("Padding", "npu-padding"), ("Online-prepare", "online-prepare"), ("Pipe", "pipe")];
const HETERO: [(&str, &str); 3] =
    [("Hetero-tensor", "tensor-level"), ("Hetero-layer", "layer-level"), ("GPU only", "gpu-only")];
const MODELS: [(&str, &str); 3] = [
    ("Llama-3-8B", "llama-3-8b"),
    ("Llama-3.2-3B", "llama-3.2-3b"),
    ("InternLM2-1.8B", "internlm2-1.8b"),
];

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| PAGE.to_owned());
    let base = Scenario::new("sd8gen3")?;
    let found = Reproduction::new(&base, &Published::built_in()?, ReproduceOptions::default())?;
    let mut runs = Runs::default();
    let page = Page {
        title: "HeteroLLM, reproduced in virtual time".to_owned(),
        lead: lead(&found),
        sections: vec![
            lengths(&base, &mut runs)?,
            aligned(&base, &mut runs, &found)?,
            fast_sync(&base, &mut runs, &found)?,
            decode(&base, &mut runs, &found)?,
            checks(&found),
            decisions(&found),
        ],
        footer: format!(
            "Lapwing {}, preset {}. Rings and black lines are published numbers (HeteroLLM, arXiv \
             2501.14794, and its later version HeteroInfer); everything else is simulated. {} more \
             published numbers are held back from this program, and are not on this page.",
            env!("CARGO_PKG_VERSION"),
            found.soc,
            found.held_back.len()
        ),
    };
    if path == PAGE {
        std::fs::create_dir_all("target")?;
    }
    std::fs::write(&path, page.html())?;
    println!("{} runs; wrote {path}", runs.count());
    if found.ok { Ok(()) } else { Err("a check was missed, or an order does not hold".into()) }
}

fn lead(found: &Reproduction) -> String {
    let checks = || found.rows.iter().filter(|row| row.role == Role::Check);
    let worst = checks().map(|row| row.error.abs()).fold(0.0, f64::max) * 100.0;
    format!(
        "The modelled GPU and NPU of a phone run the scheduler, strategies and solver of the live \
         runtime, unchanged. Of {} published numbers to which no parameter was fitted, the worst is \
         off by {worst:.1} %. The form of the models was chosen with them in view, and two of them are \
         derived from others.",
        checks().count()
    )
}

fn texts<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// Runs the scenario with these settings.
fn at(base: &Scenario, runs: &mut Runs, changes: &[(&str, &str)]) -> Result<Simulated> {
    let mut scenario = base.clone();
    changes.iter().try_for_each(|(key, value)| scenario.set(key, value))?;
    Ok(runs.run(&scenario)?)
}

/// A part of the page with one plot.
fn section(title: &str, text: impl Into<String>, plot: String) -> Section {
    let (title, text) = (title.to_owned(), text.into());
    Section { title, text, plots: vec![plot], ..Section::default() }
}

/// Time over the prompt length, for lengths that are not graph sizes.
fn lengths(base: &Scenario, runs: &mut Runs) -> Result<Section> {
    let mut series = Vec::new();
    for (title, strategy) in [HETERO[0]].into_iter().chain(NPU_ONLY.into_iter().rev()) {
        let mut points = Vec::new();
        // Closer where a standard size ends.
        for length in (32..=1056).filter(|length| length % 16 == 0 || length % 32 == 1) {
            let changes =
                [("prompt", &*length.to_string()), ("decode", "0"), ("strategy", strategy)];
            points.push((length as f64, at(base, runs, &changes)?.prefill_ms / 1e3));
        }
        series.push(Series::new(title, points));
    }
    let plot = Lines {
        title: "Time to first token, Llama-3-8B".to_owned(),
        x: "prompt tokens".to_owned(),
        y: "time to first token, s".to_owned(),
        caption: String::new(),
        series,
    };
    let text = "An NPU runs only graphs of prepared sizes. Padding computes the next standard size, \
        which makes steps; Online-prepare builds graphs of the exact length while the user \
        waits; Pipe runs several smaller graphs in turn. Hetero-tensor runs the remaining \
        rows on the GPU, so its line has hardly any steps.\n\n\
        Hover over a line to read its values.";
    Ok(section("Lengths that are not graph sizes", text, plot.svg()))
}

/// The published number of the row with that id.
fn paper(found: &Reproduction, id: &str) -> Option<f64> {
    found.rows.iter().find(|row| row.id == id).map(|row| row.paper)
}

/// Speed over the prompt length, for lengths that are graph sizes.
fn aligned(base: &Scenario, runs: &mut Runs, found: &Reproduction) -> Result<Section> {
    let mut series = Vec::new();
    for (title, strategy) in HETERO {
        let mut line = Series::new(title, Vec::new());
        let short = strategy.split('-').next().unwrap_or(strategy);
        for length in [32, 64, 128, 256, 512, 1024] {
            let changes =
                [("prompt", &*length.to_string()), ("decode", "0"), ("strategy", strategy)];
            let x = f64::from(length);
            line.points.push((x, at(base, runs, &changes)?.prefill_tokens_per_second));
            line.published
                .extend(paper(found, &format!("prefill-{short}-{length}")).map(|y| (x, y)));
        }
        series.push(line);
    }
    let plot = Lines {
        title: "Prefill, Llama-3-8B".to_owned(),
        x: "prompt tokens".to_owned(),
        y: "tokens per second".to_owned(),
        caption: String::new(),
        series,
    };
    let text = "Hetero-layer runs every matmul on the NPU; Hetero-tensor divides those for which the NPU \
        is slow. Rings are published values; none of them was fitted to.";
    Ok(section("Speed at standard sizes", text, plot.svg()))
}

/// Gain from fast synchronisation.
fn fast_sync(base: &Scenario, runs: &mut Runs, found: &Reproduction) -> Result<Section> {
    let settings = [
        ("prefill of 64", "64", "0"),
        ("prefill of 256", "256", "0"),
        ("prefill of 1024", "1024", "0"),
        ("decode", "256", "8"),
    ];
    let mut groups = Vec::new();
    for (name, prompt, decode) in settings {
        let mut values = Vec::new();
        for (_, model) in MODELS {
            let speed = |runs: &mut Runs, sync: &str| {
                let changes = [
                    ("model", model),
                    ("prompt", prompt),
                    ("decode", decode),
                    ("strategy", "tensor-level"),
                    ("fast-sync", sync),
                ];
                let run = at(base, runs, &changes)?;
                let decodes = run.decode_tokens_per_second;
                Result::Ok(decodes.unwrap_or(run.prefill_tokens_per_second))
            };
            values.push(Some(speed(runs, "on")? / speed(runs, "off")?));
        }
        let decodes = (name == "decode").then(|| paper(found, "fast-sync-decode"));
        let published = decodes.into_iter().collect();
        groups.push(BarGroup { name: name.to_owned(), values, published });
    }
    let plot = Bars {
        title: "Hetero-tensor, fast / slow synchronisation".to_owned(),
        x: String::new(),
        y: "speed-up".to_owned(),
        names: texts(MODELS.map(|(title, _)| title)),
        groups,
    };
    let text = format!(
        "Both processors compute parts of one matmul, so each must learn when the other is done: \
            by copies, each of which drains a queue and takes {:.0} µs, or by polling a flag, which \
            takes {:.1} µs. The longer the matmuls, the less it matters; decode is so short that \
            synchronisation dominates it.",
        base.soc()?.value("sync.copy")?,
        base.soc()?.value("sync.fast")?
    );
    Ok(section("Fast synchronisation", text, plot.svg()))
}

/// Speed of decode.
fn decode(base: &Scenario, runs: &mut Runs, found: &Reproduction) -> Result<Section> {
    let mut groups = Vec::new();
    for (title, model) in MODELS {
        let mut values = Vec::new();
        for (_, strategy) in HETERO {
            let changes =
                [("model", model), ("prompt", "256"), ("decode", "8"), ("strategy", strategy)];
            values.push(at(base, runs, &changes)?.decode_tokens_per_second);
        }
        let published = match model {
            "llama-3-8b" => vec![paper(found, "decode-tensor"), None, paper(found, "decode-gpu")],
            _ => Vec::new(),
        };
        groups.push(BarGroup { name: title.to_owned(), values, published });
    }
    let plot = Bars {
        title: "Decode after 256 tokens".to_owned(),
        x: String::new(),
        y: "tokens per second".to_owned(),
        names: texts(HETERO.map(|(title, _)| title)),
        groups,
    };
    let text = "A generated token reads every weight once, so decode is bound by memory bandwidth. \
        Neither the GPU nor the NPU reaches all of it alone; together they come closer. The \
        two marks are pins: the preset was fitted to them, and the other models follow.";
    Ok(section("Decode", text, plot.svg()))
}

fn cells(row: &Reproduced) -> Vec<Cell> {
    let tone = match row.role {
        Role::Check if row.is_missed() => Tone::Bad,
        Role::Check => Tone::Good,
        _ => Tone::Plain,
    };
    vec![
        row.group.clone().into(),
        row.what.clone().into(),
        format!("{:.2} {}", row.paper, row.unit).into(),
        format!("{:.2} {}", row.model, row.unit).into(),
        Cell { text: format!("{:+.1} %", row.error * 100.0), tone },
        row.role.to_string().into(),
    ]
}

fn checks(found: &Reproduction) -> Section {
    let mut rows: Vec<&Reproduced> = found.rows.iter().collect();
    let order = [Role::Check, Role::Pin, Role::Stated];
    rows.sort_by_key(|row| order.iter().position(|role| *role == row.role));
    Section {
        title: "Every number".to_owned(),
        text: "No parameter was fitted to a check, which must be met within 10 %. A pin was fitted to, and \
               proves nothing. A stated number is published loosely or contradicts others."
            .to_owned(),
        heads: texts(["", "What", "#Published", "#Simulated", "#Error", "Role"]),
        rows: rows.into_iter().map(cells).collect(),
        ..Section::default()
    }
}

fn decisions(found: &Reproduction) -> Section {
    let rows = found.decisions.iter().map(|decision| {
        let tone = if decision.same { Tone::Good } else { Tone::Bad };
        let text = if decision.same { "same" } else { "differs" };
        vec![
            decision.product.clone().into(),
            decision.tokens.clone().into(),
            decision.paper.clone().into(),
            decision.model.clone().into(),
            Cell { text: text.to_owned(), tone },
            decision.reason.clone().into(),
        ]
    });
    Section {
        title: "Decisions of the solver".to_owned(),
        text: "Nine decisions of the published solver, and those of Lapwing's solver with the same times."
            .to_owned(),
        heads: texts(["Matmul", "#Tokens", "Published", "Lapwing", "", "Why"]),
        rows: rows.collect(),
        ..Section::default()
    }
}
