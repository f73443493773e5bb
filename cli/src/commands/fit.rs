//! `lapwing fit`: fits a preset's pinned numbers to published ones.

use std::path::{Path, PathBuf};

use lapwing_lab::simulate::Fit;
use lapwing_lab::simulate::published::Published;

use lapwing_traces::whole_file;

use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::soc;
use crate::cli::table::{Align, table};

const EXAMPLES: &str = "\
Examples:
  lapwing fit                     fit the pinned numbers of sd8gen3 to the published pins
  lapwing fit --pins mine.toml    fit to other pins
  lapwing fit -o fitted.toml && lapwing simulate --soc fitted.toml

A pins file has the format of src/simulate/published.toml: [[row]] with id, group, what, run
(prompt, decode, strategy, …) or product, quantity, published, role and source. Rows with
role = \"pin\" are fitted to, rows with role = \"check\" are compared afterwards.

The fit minimises the sum of squares of ln(model / published). 'left out' is the error of a pin if
the fit is made without it; a pin that alone determines a number of the SoC says so instead.

With --json:
  {\"parameters\":[{\"key\":\"…\",\"unit\":\"…\",\"before\":F,\"after\":F,\"determined\":true|false}],
   \"pins\":[{\"id\":\"…\",\"published\":F,\"model\":F,\"error\":F,\"error_left_out\":F|null,
     \"alone_determines\":[\"…\"]}],
   \"checks\":[{\"id\":\"…\",\"published\":F,\"model\":F,\"error\":F}],\"steps\":N,\"converged\":true|false,
   \"error\":F}";

/// Options of `fit`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Numbers to fit to [default: the published ones]
    #[arg(long, value_name = "FILE.toml")]
    pins: Option<PathBuf>,

    /// Processors whose pinned numbers are fitted: a preset, or a .toml file
    #[arg(long, value_name = "SOC", default_value = "sd8gen3")]
    soc: String,

    /// Write the processors with the fitted numbers to FILE, for --soc
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
}

/// Fits and prints.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let base = soc(&args.soc)?;
    let published = match &args.pins {
        None => Published::built_in()?,
        Some(path) => read(path)?,
    };
    if let Some(path) = &args.output {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    let fit = Fit::new(&base, &published)?;
    if let Some(path) = &args.output {
        let toml = fit.applied_to(&base)?.processors().to_toml()?;
        files::write(path, toml.as_bytes(), session)?;
    }
    if session.json { print_json(&fit) } else { print(&text(&fit)) }
}

fn read(path: &Path) -> Result<Published, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::file("read the pins", path, &error))?;
    Published::parse(&text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

fn text(fit: &Fit) -> String {
    let percent = |error: f64| format!("{:+.1} %", error * 100.0);
    let header = [
        ("number", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("", Align::Left),
        ("", Align::Left),
    ];
    let parameters = fit.parameters.iter().map(|p| {
        let (before, after) = (format!("{:.4}", p.before), format!("{:.4}", p.after));
        let known = if p.determined { "" } else { "not determined by any pin" };
        [p.key.clone(), before, after, p.unit.clone(), known.to_owned()]
    });
    let mut text = table(header, parameters.collect());
    let header = [
        ("pin", Align::Left),
        ("published", Align::Right),
        ("model", Align::Right),
        ("error", Align::Right),
        ("left out", Align::Left),
    ];
    let pins = fit.pins.iter().map(|pin| {
        let left_out = match pin.error_left_out {
            Some(error) => percent(error),
            None => format!("alone determines {}", pin.alone_determines.join(", ")),
        };
        let (published, model) = (format!("{:.2}", pin.published), format!("{:.2}", pin.model));
        [pin.id.clone(), published, model, percent(pin.error), left_out]
    });
    text.push('\n');
    text.push_str(&table(header, pins.collect()));
    let header = [
        ("check (not fitted)", Align::Left),
        ("published", Align::Right),
        ("model", Align::Right),
        ("error", Align::Right),
    ];
    let checks = fit.checks.iter().map(|check| {
        let (published, model) = (format!("{:.2}", check.published), format!("{:.2}", check.model));
        [check.id.clone(), published, model, percent(check.error)]
    });
    text.push('\n');
    text.push_str(&table(header, checks.collect()));
    if !fit.converged {
        text.push_str(
            "\nnot converged: the fit was still improving at the maximum number of steps",
        );
    }
    text.push_str(&format!(
        "\n{} steps; mean error of the pins {:.2} %\n",
        fit.steps,
        fit.error * 100.0
    ));
    text
}
