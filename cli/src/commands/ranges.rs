//! `lapwing ranges`: measures the magnitudes of a model's activations.

use lapwing_engine::ranges::{ActivationRange, MeasuredRanges, RangeOptions};
use lapwing_traces::text::counted;
use serde::Serialize;

use crate::cli::background::until_signal;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;
use crate::cli::windowed_text::WindowedTextArgs;
use crate::cli::{EngineArgs, ModelArg, at_least_one};

const EXAMPLES: &str = "\
Examples:
  lapwing ranges -m FILE.gguf text.txt
  lapwing run -m FILE.gguf --device cpu+npu=systolic:activations=int8 \"Why is the sky blue?\"
  lapwing perplexity -m FILE.gguf --device cpu+npu=systolic:outliers=none,clip=1 text.txt
  lapwing run -m FILE.gguf --device cpu+npu=qnn:activations=u16,weights=int8 \"…\"

Runs the text through the model on the CPU, op by op, in windows of --ctx tokens, and stores the
magnitudes of the inputs and outputs of all products in the cache folder. NPUs with activations in
integers of fixed scales need them. The keys of systolic are activations=int8, clip (the share of
the values that a scale covers), outliers=cpu|none and prune (docs/outliers.md); that of qnn is
activations=u16|u8 (docs/qnn.md). A text of a few thousand tokens is enough. Measure again after a
change of the model's file, of --attention or of --share-kv.

Prints the products with the largest outliers: max and the quantiles are magnitudes of the input.

With --json:
  {\"file\":\"PATH\",\"model\":\"PATH\",\"tokens\":N,\"windows\":N,
   \"products\":[{\"matrix\":\"…\",\"channels\":N,\"max\":X,\"p99\":X,\"p999\":X,\"p9999\":X,
                \"output_max\":X},…]}";

/// Products of the printed table.
const SHOWN: usize = 10;

const BAR: &str = "{msg:.bold} {bar:40.cyan/dim} {pos}/{len} windows  eta {eta:>4}";

/// Options of `ranges`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    text: WindowedTextArgs,

    /// Maximum number of windows; the rest of the text is not used
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    windows: usize,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Serialize)]
struct Report {
    file: String,
    model: String,
    tokens: u64,
    windows: usize,
    products: Vec<ProductReport>,
}

#[derive(Serialize)]
struct ProductReport {
    matrix: String,
    channels: usize,
    max: f32,
    p99: f32,
    p999: f32,
    p9999: f32,
    output_max: f32,
}

/// Measures, stores and prints.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let ctx = args.text.ctx;
    let text = args.text.read().await?;
    let builder = args.engine.builder_to_score(&args.model.model, session).await?.context(ctx);
    let model = builder.model_file().display().to_string();
    if args.engine.no_packed_cache {
        return Err(Failure::usage("ranges are stored in the cache: leave out --no-packed-cache"));
    }
    let options =
        RangeOptions { window: ctx, windows_max: args.windows, ..RangeOptions::of_text(text) };
    let measured = until_signal("measurement", session.bar(BAR), session, move |step| {
        builder.measure_ranges_blocking(&options, &mut |at| {
            step(at.done, at.of, format_args!("measuring"))
        })
    });
    let report = report(&measured.await?, model)?;
    if session.json { print_json(&report) } else { print_report(report) }
}

fn report(measured: &MeasuredRanges, model: String) -> Result<Report, Failure> {
    let Some(file) = &measured.file else {
        return Err(Failure::failed("there is no cache folder for the ranges")
            .hint("set LAPWING_CACHE to a folder"));
    };
    let product = |(matrix, range): (&str, &ActivationRange)| ProductReport {
        matrix: matrix.to_owned(),
        channels: range.channels().len(),
        max: range.largest(),
        p99: range.quantile(0.99),
        p999: range.quantile(0.999),
        p9999: range.quantile(0.9999),
        output_max: range.largest_output(),
    };
    Ok(Report {
        file: file.display().to_string(),
        model,
        tokens: measured.ranges.rows(),
        windows: measured.windows,
        products: measured.ranges.products().map(product).collect(),
    })
}

fn print_report(mut report: Report) -> Result<(), Failure> {
    let ratio = |product: &ProductReport| product.max / product.p999.max(f32::MIN_POSITIVE);
    report.products.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    let rows = report.products.iter().take(SHOWN).map(|product| {
        let number = |x: f32| format!("{x:.3}");
        let ProductReport { matrix, channels, max, p99, p999, p9999, .. } = product;
        [
            visible(matrix).to_string(),
            channels.to_string(),
            number(*max),
            number(*p99),
            number(*p999),
            number(*p9999),
            format!("{:.1}", ratio(product)),
        ]
    });
    let right = |title| (title, Align::Right);
    let header = [
        ("product", Align::Left),
        right("channels"),
        right("max"),
        right("99 %"),
        right("99.9 %"),
        right("99.99 %"),
        right("max / 99.9 %"),
    ];
    print(&format!(
        "{} measured on {} in {}; {}\nthe {} with the largest outliers:\n{}",
        counted(report.products.len(), "product"),
        counted(usize::try_from(report.tokens).unwrap_or(usize::MAX), "token"),
        counted(report.windows, "window"),
        visible(&report.file),
        report.products.len().min(SHOWN),
        table(header, rows.collect()),
    ))
}
