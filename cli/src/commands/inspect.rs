//! `lapwing inspect`: the contents of a model file, and its placement on devices.

mod layers;
mod per_layer;
mod report;
mod text;

use lapwing_engine::EngineBuilder;
use lapwing_kernels::weights::WeightFile;

use self::report::Report;
use crate::cli::failure::Failure;
use crate::cli::opening::open;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::{EngineArgs, PositionalModel};

const EXAMPLES: &str = "\
Examples:
  lapwing inspect FILE.gguf
  lapwing inspect smollm2 --json
  lapwing inspect FILE.gguf --full            all tensors, arrays and long texts in full

Tensors that repeat from layer to layer are one line, as blk.0-29.attn_q.weight.

A file of an unsupported architecture is shown too, with the reason why it cannot run.

With --json:
  {\"paths\":[…],\"bytes\":N,\"architecture\":\"…\"|null,\"parameters\":N,
   \"metadata\":{\"KEY\":{\"type\":\"…\",\"value\":V,\"length\":N}},
   \"tensors\":[{\"name\":\"…\",\"shape\":[…],\"format\":\"…\",\"bytes\":N}],
   \"formats\":[{\"format\":\"…\",\"tensors\":N,\"bytes\":N}],
   \"hyper_parameters\":{…}|null,\"kv_bytes_per_token\":N|null,\"requant\":{…}|null,
   \"placement\":{\"strategy\":\"…\",\"reason\":\"…\",\"stages\":[…]}|null,\"cannot_run\":\"…\"|null}
  shape: in GGUF order, the contiguous dimension first; length: of an array or text that was
  abbreviated.";

/// Options of `inspect`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: PositionalModel,

    /// Show every tensor on a line of its own, and arrays and long texts in full
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

/// Prints what the file holds.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let model = args.model.name().ok_or_else(|| {
        Failure::usage("no model: give a .gguf file or a name, as in `lapwing inspect FILE.gguf`")
    })?;
    let builder = args.engine.builder_of(model, session).await?;
    let report = report(builder, &args, session).await?;
    if session.json { print_json(&report) } else { print(&text::of(&report, args.full)) }
}

async fn report(builder: EngineBuilder, args: &Args, session: &Session) -> Result<Report, Failure> {
    let file = WeightFile::open(builder.model_file())
        .map_err(|error| Failure::failed(error.to_string()))?;
    let mut report = Report::of_file(&file, args.full);
    match open(builder, session).await {
        Ok(engine) => report.add_engine(&engine, args.engine.kv),
        Err(Failure::Failed { message, .. }) => report.cannot_run = Some(message),
        Err(other) => return Err(other),
    }
    Ok(report)
}
