//! `lapwing inspect`: the contents of a model file, and its placement on devices.

mod fit;
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
use crate::cli::{EngineArgs, PositionalModel, at_least_one};

const EXAMPLES: &str = "\
Examples:
  lapwing inspect FILE.gguf
  lapwing inspect smollm2 --json
  lapwing inspect FILE.gguf --full            all tensors, arrays and long texts in full
  lapwing inspect --fit hf:owner/repo         whether a model runs here, without fetching it
  lapwing inspect --fit hf:owner/repo:Q8_0 -c 32768 --device cpu

Tensors that repeat from layer to layer are one line, as blk.0-29.attn_q.weight.

A file of an unsupported architecture is shown too, with the reason why it cannot run.

--fit reads the header only, of a repository by requests for its first bytes: what the model needs
of the memory that is free, the largest context, and predicted speeds, for each device of this
machine or for those of --device. A few ops of the model's shapes are measured for some seconds,
with zeros for weights, unless there is a profile of the model (`lapwing profile`). The other
files of the repository are estimated from their sizes.

With --json:
  {\"paths\":[…],\"bytes\":N,\"architecture\":\"…\"|null,\"parameters\":N,
   \"metadata\":{\"KEY\":{\"type\":\"…\",\"value\":V,\"length\":N}},
   \"tensors\":[{\"name\":\"…\",\"shape\":[…],\"format\":\"…\",\"bytes\":N}],
   \"formats\":[{\"format\":\"…\",\"tensors\":N,\"bytes\":N}],
   \"hyper_parameters\":{…}|null,\"kv_bytes_per_token\":N|null,
   \"state_bytes_per_sequence\":N|null,\"requant\":{…}|null,
   \"placement\":{\"strategy\":\"…\",\"reason\":\"…\",\"stages\":[…]}|null,\"cannot_run\":\"…\"|null}
  shape: in GGUF order, the contiguous dimension first; length: of an array or text that was
  abbreviated.
  --fit: {\"model\":\"…\",\"files\":[…],\"bytes\":N|null,\"architecture\":\"…\"|null,\"parameters\":N|null,
   \"formats\":[{\"format\":\"…\",\"bytes\":N}],\"supported\":true|false,\"reason\":\"…\"|null,
   \"verdict\":\"…\",\"kv\":\"…\"|null,\"devices\":[{\"devices\":\"…\",\"error\":\"…\"|null,
   \"strategy\":\"…\",\"fits\":true|false|null,\"context\":N,\"trained_context\":N,
   \"largest_context\":N|null,\"memory\":[{\"device\":\"…\"|null,\"weights\":N,\"kv\":N,\"buffers\":N,
   \"needed\":N,\"free\":N|null}],\"prompt_tokens\":N,\"first_token_ms\":F,
   \"tokens_per_second\":F|null,\"tokens_per_second_at_context\":F|null,\"rates\":\"…\",
   \"notes\":[\"…\"]}],\"repository\":[{\"file\":\"…\",\"name\":\"…\",\"parts\":N,\"bytes\":N|null,
   \"read\":true|false,\"fits\":true|false|null,\"tokens_per_second\":F|null}],
   \"repository_unknown\":\"…\"|null}";

/// Options of `inspect`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: PositionalModel,

    /// Show every tensor on a line of its own, and arrays and long texts in full
    #[arg(long)]
    full: bool,

    /// Say what the model needs here and how fast it would run, from its header alone: it is not fetched
    #[arg(long, conflicts_with = "full")]
    fit: bool,

    /// Tokens of the context that --fit is for [default: the training context, up to 8192]
    #[arg(short, long, value_name = "TOKENS", value_parser = at_least_one, requires = "fit", help_heading = "Engine")]
    ctx: Option<usize>,

    #[command(flatten)]
    engine: EngineArgs,
}

/// Prints what the file holds.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let model = args.model.name().ok_or_else(|| {
        Failure::usage("no model: give a .gguf file or a name, as in `lapwing inspect FILE.gguf`")
    })?;
    if args.fit {
        return fit::run(&args, model, session).await;
    }
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
