//! `lapwing reproduce`: compares published numbers with simulated ones.

use std::path::PathBuf;

use lapwing_lab::simulate::published::{Published, Role};
use lapwing_lab::simulate::{
    CHECK_ERROR_MAX, Crossings, HeldBack, ReproduceOptions, Reproduced, Reproduction,
};

use lapwing_traces::whole_file;

use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::soc;
use crate::cli::table::{Align, table};

mod help;

use help::EXAMPLES;

/// Relative difference up to which two times count as nearly equal.
const NEAR: f64 = 0.02;

/// Options of `reproduce`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// One table or figure [default: all]
    #[arg(value_name = "TABLE|FIGURE")]
    group: Option<String>,

    /// Processors: a preset, or a .toml file
    #[arg(long, value_name = "SOC", default_value = "sd8gen3")]
    soc: String,

    /// Also predict the numbers that are held back
    #[arg(long)]
    predict_held_back: bool,

    /// Write a page with plots and tables
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,

    /// Write a table with a row for each number
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
}

/// Simulates and prints.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let base = soc(&args.soc)?;
    for path in args.html.iter().chain(&args.csv) {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    let published = Published::built_in()?;
    let options =
        ReproduceOptions { group: args.group.as_deref(), predictions: args.predict_held_back };
    let found = Reproduction::new(&base, &published, options)?;
    if let Some(path) = &args.html {
        files::write(path, found.html().as_bytes(), session)?;
    }
    if let Some(path) = &args.csv {
        files::write(path, found.csv().as_bytes(), session)?;
    }
    if session.json {
        print_json(&found)?
    } else {
        print(&text(&found, args))?
    }
    if found.ok {
        return Ok(());
    }
    let missed = found.rows.iter().filter(|row| row.is_missed()).map(|row| row.id.clone());
    let orders = found.orders.iter().filter(|order| !order.ok).map(|order| order.what.clone());
    let all: Vec<String> = missed.chain(orders).collect();
    Err(Failure::failed(format!("not reproduced: {}", all.join("; "))))
}

fn text(found: &Reproduction, args: &Args) -> String {
    let mut text = String::new();
    if !found.rows.is_empty() {
        text.push_str(&rows(&found.rows));
        text.push_str(&summary(&found.rows));
    }
    if !found.orders.is_empty() {
        text.push_str("\nOrders\n");
        for order in &found.orders {
            let mark = if order.ok { "holds:   " } else { "violated:" };
            text.push_str(&format!(
                "  {mark} {} ({:.2} < {:.2})\n",
                order.what, order.less, order.more
            ));
        }
    }
    if !found.decisions.is_empty() {
        text.push_str("\nDecisions of tensor-level, Table 3\n");
        text.push_str(&decisions(found));
    }
    if !found.crossings.is_empty() {
        text.push_str("\nBuffers that cross in a layer of Llama-3-8B, 256 tokens\n");
        text.push_str(&crossings(&found.crossings));
    }
    for note in &found.notes {
        text.push_str(&format!("\nnote: {note}\n"));
    }
    if !found.held_back.is_empty() {
        text.push_str(&held_back(&found.held_back, args.predict_held_back));
    }
    text
}

fn rows(rows: &[Reproduced]) -> String {
    let header = [
        ("", Align::Left),
        ("what", Align::Left),
        ("paper", Align::Right),
        ("model", Align::Right),
        ("", Align::Left),
        ("error", Align::Right),
        ("95 %", Align::Right),
        ("role", Align::Left),
    ];
    let row = |row: &Reproduced| {
        let role = match (row.is_missed(), row.disagrees(), row.is_outside()) {
            (true, ..) => "check, MISSED".to_owned(),
            (_, true, _) => "stated, disagrees".to_owned(),
            (.., true) => "check, outside".to_owned(),
            _ => row.role.to_string(),
        };
        [
            row.group.clone(),
            row.what.clone(),
            number(row.paper),
            number(row.model),
            row.unit.to_owned(),
            format!("{:+.1} %", row.error * 100.0),
            interval(row.interval),
            role,
        ]
    };
    table(header, rows.iter().map(row).collect())
}

fn interval(ends: [f64; 2]) -> String {
    ends.map(number).join(" – ")
}

fn crossings(rows: &[Crossings]) -> String {
    let header = [
        ("strategy", Align::Left),
        ("", Align::Left),
        ("cuts", Align::Right),
        ("to NPU", Align::Right),
        ("to GPU", Align::Right),
        ("launches", Align::Right),
        ("restarts", Align::Right),
    ];
    let row = |row: &Crossings| {
        let Crossings { cuts, to_npu, to_gpu, launches, restarts, .. } = row;
        let [cuts, to_npu, to_gpu, launches, restarts] =
            [cuts, to_npu, to_gpu, launches, restarts].map(|count| format!("{count:.1}"));
        let (strategy, phase) = (row.strategy.clone(), row.phase.to_owned());
        [strategy, phase, cuts, to_npu, to_gpu, launches, restarts]
    };
    table(header, rows.iter().map(row).collect())
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn summary(rows: &[Reproduced]) -> String {
    let of = |role: Role| rows.iter().filter(move |row| row.role == role);
    let worst = |role: Role| of(role).map(|row| row.error.abs()).fold(0.0, f64::max) * 100.0;
    let checks = of(Role::Check).count();
    let within = of(Role::Check).filter(|row| !row.is_missed()).count();
    let mut text = String::new();
    if checks > 0 {
        text.push_str(&format!(
            "{within} of {checks} checks within {:.0} %, the worst {:.1} %\n",
            CHECK_ERROR_MAX * 100.0,
            worst(Role::Check)
        ));
        let outside = of(Role::Check).filter(|row| row.is_outside()).count();
        text.push_str(&format!(
            "{outside} of {checks} checks outside the interval that the errors of the pins leave open\n"
        ));
    }
    if of(Role::Pin).count() > 0 {
        let count = of(Role::Pin).count();
        text.push_str(&format!("{count} pins, the worst off by {:.1} %\n", worst(Role::Pin)));
    }
    if of(Role::Stated).count() > 0 {
        let far = of(Role::Stated).filter(|row| row.disagrees()).count();
        let count = of(Role::Stated).count();
        text.push_str(&format!(
            "{count} stated numbers, {far} of them disagree by more than {:.0} %\n",
            CHECK_ERROR_MAX * 100.0
        ));
    }
    text
}

fn decisions(found: &Reproduction) -> String {
    let header = [
        ("matmul", Align::Left),
        ("tokens", Align::Right),
        ("paper", Align::Left),
        ("model", Align::Left),
        ("", Align::Left),
        ("extra time of published", Align::Right),
    ];
    let decisions = &found.decisions;
    let row = |decision: &lapwing_lab::simulate::Decision| {
        let same = if decision.same { "same" } else { "DIFFERS" };
        [
            decision.product.clone(),
            decision.tokens.clone(),
            decision.paper.clone(),
            decision.model.clone(),
            same.to_owned(),
            decision.longer.map_or(String::new(), |l| format!("{:+.1} %", l * 100.0)),
        ]
    };
    let mut text = table(header, decisions.iter().map(row).collect());
    for decision in decisions {
        text.push_str(&format!(
            "  {} × {}: {}\n",
            decision.product, decision.tokens, decision.reason
        ));
    }
    let same = decisions.iter().filter(|decision| decision.same).count();
    let [agreed, lengths] = [0, 1].map(|at| decisions.iter().map(|d| d.lengths[at]).sum::<usize>());
    let near = |decision: &&lapwing_lab::simulate::Decision| {
        decision.longer.is_some_and(|longer| longer <= NEAR)
    };
    text.push_str(&format!(
        "{same} of {} decisions agree with the published ones at every length, {agreed} of {lengths} at single lengths; {} of \
         the others save at most {:.0} % over them\n",
        decisions.len(),
        decisions.iter().filter(near).count(),
        NEAR * 100.0
    ));
    text
}

fn held_back(rows: &[HeldBack], predicted: bool) -> String {
    let count = rows.len();
    if !predicted {
        return format!(
            "\n{count} published numbers are held back, and are not compared; \
             --predict-held-back prints their predictions\n"
        );
    }
    let header = [
        ("", Align::Left),
        ("what", Align::Left),
        ("paper", Align::Left),
        ("model", Align::Right),
        ("", Align::Left),
        ("95 %", Align::Right),
    ];
    let row = |row: &HeldBack| {
        [
            row.group.clone(),
            row.what.clone(),
            format!("held back ({})", row.source.split(';').next().unwrap_or_default()),
            row.model.map_or("–".to_owned(), number),
            row.unit.to_owned(),
            row.interval.map_or(String::new(), interval),
        ]
    };
    format!(
        "\npredictions of {count} published numbers that are held back, for a blind comparison\n{}",
        table(header, rows.iter().map(row).collect())
    )
}
