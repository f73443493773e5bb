//! `lapwing embed`: the embeddings of texts.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use lapwing_engine::{EmbedRequest, Embedding, Engine, Pooling, Shutdown};
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::input::{Source, without_last_line_feed};
use crate::cli::opening::open;
use crate::cli::output::{print_json, print_plain};
use crate::cli::session::Session;
use crate::cli::{EngineArgs, ModelArg, PrefixArgs};

const EXAMPLES: &str = "\
Examples:
  lapwing embed --normalize \"a small boat\" \"a large ship\"
  lapwing embed -m FILE.gguf --pooling last --json \"a small boat\"
  lapwing embed --lines - < sentences.txt
  lapwing embed -m all-minilm-l6-v2.gguf --normalize \"a small boat\"

The embedding of a text is made of the model's hidden states after the final norm. Any model has
them; how useful they are depends on what the model was trained for. Encoders such as BERT make
nothing else. Control tokens in a text are plain text, and the line feed at the end of a file is
left out.

Prints one line for each text: its values, with spaces between them (--pooling none: one line for
each token).

With --json:
  {\"model\":\"PATH\",\"width\":N,\"pooling\":\"none\"|\"mean\"|\"cls\"|\"last\",\"normalized\":BOOL,
   \"embeddings\":[{\"tokens\":N,\"vectors\":[[X,…],…]},…]}";

/// Options of `embed`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The texts; a single `-` reads stdin
    #[arg(value_name = "TEXT", conflicts_with = "file")]
    texts: Vec<String>,

    /// Read the text from FILE; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Take each line of the file or of stdin as a text; empty lines are left out
    #[arg(long)]
    lines: bool,

    /// How the vectors of the tokens become one [default: as the model's file says, or mean]
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(Pooling::ALL.map(Pooling::name)))]
    pooling: Option<String>,

    /// Divide each vector by its Euclidean length
    #[arg(long)]
    normalize: bool,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    prefix: PrefixArgs,
}

#[derive(Serialize)]
struct Report {
    model: String,
    width: usize,
    pooling: &'static str,
    normalized: bool,
    embeddings: Vec<TextReport>,
}

#[derive(Serialize)]
struct TextReport {
    tokens: usize,
    vectors: Vec<Vec<f32>>,
}

/// Prints the embeddings of texts.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let texts = texts(args.texts, args.file, args.lines).await?;
    let pooling = Pooling::ALL.into_iter().find(|p| args.pooling.as_deref() == Some(p.name()));
    let builder = args.engine.builder_to_score(&args.model.model, session).await?;
    let engine = open(args.prefix.applied(builder), session).await?;
    let pooling = match pooling {
        Some(pooling) => pooling,
        None => engine.pooling()?,
    };
    let requests = texts.into_iter().map(|text| {
        let request = EmbedRequest::text(text).pooling(pooling);
        if args.normalize { request.normalized() } else { request }
    });
    let embeddings = engine.embed_batch(requests).await?;
    engine.shutdown(Shutdown::Drain).await?;
    if session.json {
        return print_json(&report(&engine, pooling, args.normalize, &embeddings));
    }
    let mut lines = String::new();
    for vector in embeddings.iter().flat_map(Embedding::vectors) {
        let values: Vec<String> = vector.iter().map(f32::to_string).collect();
        lines.push_str(&values.join(" "));
        lines.push('\n');
    }
    print_plain(&lines)
}

/// The texts of the arguments, of a file, or of stdin.
pub(super) async fn texts(
    mut texts: Vec<String>,
    file: Option<PathBuf>,
    lines: bool,
) -> Result<Vec<String>, Failure> {
    let is_stdin = texts.len() == 1 && texts[0] == "-";
    if !texts.is_empty() && !is_stdin {
        return match lines {
            true => Err(Failure::usage("--lines needs -f FILE, or - to read stdin")),
            false => Ok(texts),
        };
    }
    let text = Source::choose("text", texts.pop(), file)?.read().await?;
    let found: Vec<String> = match lines {
        true => text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
        false => vec![without_last_line_feed(&text).to_owned()],
    };
    if found.is_empty() {
        return Err(Failure::failed("the input has no line with text"));
    }
    Ok(found)
}

fn report(engine: &Engine, pooling: Pooling, normalized: bool, embeddings: &[Embedding]) -> Report {
    let text = |embedding: &Embedding| TextReport {
        tokens: embedding.tokens,
        vectors: embedding.vectors().map(<[f32]>::to_vec).collect(),
    };
    Report {
        model: engine.model_path().display().to_string(),
        width: engine.model().width,
        pooling: pooling.name(),
        normalized,
        embeddings: embeddings.iter().map(text).collect(),
    }
}
