//! `lapwing reproduce`: compares published numbers with simulated ones.

use std::path::PathBuf;

use lapwing_lab::simulate::published::{Published, Role};
use lapwing_lab::simulate::{
    CHECK_ERROR_MAX, HeldBack, ReproduceOptions, Reproduced, Reproduction,
};

use lapwing_traces::whole_file;

use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::soc;
use crate::cli::table::{Align, table};

const EXAMPLES: &str = "\
Examples:
  lapwing reproduce                       all published numbers that are not held back
  lapwing reproduce table3                one table or figure
  lapwing reproduce --predict-held-back   also predict the numbers that are held back
  lapwing reproduce --html page.html --csv numbers.csv

Tables and figures, by subject: prefill (fig13), lengths (fig14), preparation, decode (fig16),
fast-sync (fig15, fig17), interference (fig18), power (fig19), ablation, tasks, table3. Figure
numbers are those of HeteroLLM (arXiv 2501.14794).

Roles: a pin is a number that parameters were fitted to. No parameter was fitted to a check, which
must be met within 10 %; the form of the models was chosen with the checks in view, and two checks
are derived from other published numbers, so they are no blind test. A stated number is published
loosely or contradicts others, and is not judged. A number held back is published, but not part of
this program, so that predictions can be compared blind.

Exit code 1 if a check is missed or an order does not hold.

With --json:
  {\"soc\":\"…\",\"rows\":[{\"id\":\"…\",\"group\":\"…\",\"what\":\"…\",\"of\":\"…\",\"paper\":F,\"model\":F,
    \"unit\":\"…\",\"error\":F,\"role\":\"pin|check|stated\",\"source\":\"…\"}],
   \"held_back\":[{\"id\":\"…\",\"group\":\"…\",\"what\":\"…\",\"of\":\"…\",\"model\":F|null,\"unit\":\"…\",
    \"source\":\"…\"}],
   \"orders\":[{\"what\":\"…\",\"less\":F,\"more\":F,\"ok\":true|false}],
   \"decisions\":[{\"product\":\"…\",\"tokens\":\"…\",\"paper\":\"…\",\"model\":\"…\",\"same\":true|false,
    \"longer\":F|null,\"reason\":\"…\"}],\"notes\":[\"…\"],\"ok\":true|false}";

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
        text.push_str("\nDecisions of the solver, Table 3\n");
        text.push_str(&decisions(found));
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
        ("role", Align::Left),
    ];
    let row = |row: &Reproduced| {
        let role = match (row.is_missed(), row.disagrees()) {
            (true, _) => "check, MISSED".to_owned(),
            (_, true) => "stated, disagrees".to_owned(),
            _ => row.role.to_string(),
        };
        [
            row.group.clone(),
            row.what.clone(),
            number(row.paper),
            number(row.model),
            row.unit.to_owned(),
            format!("{:+.1} %", row.error * 100.0),
            role,
        ]
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
    let near = |decision: &&lapwing_lab::simulate::Decision| {
        decision.longer.is_some_and(|longer| longer <= NEAR)
    };
    text.push_str(&format!(
        "{same} of {} decisions agree with the published ones; {} of the others save at most \
         {:.0} % over them\n",
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
    ];
    let row = |row: &HeldBack| {
        [
            row.group.clone(),
            row.what.clone(),
            format!("held back ({})", row.source.split(';').next().unwrap_or_default()),
            row.model.map_or("–".to_owned(), number),
            row.unit.to_owned(),
        ]
    };
    format!(
        "\npredictions of {count} published numbers that are held back, for a blind comparison\n{}",
        table(header, rows.iter().map(row).collect())
    )
}
