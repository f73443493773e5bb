//! `lapwing rerank`: documents, ordered by how well they answer a query.

use std::path::PathBuf;

use lapwing_engine::{Engine, Ranking, RerankRequest, Shutdown};
use serde::Serialize;

use super::embed::texts;
use crate::cli::failure::Failure;
use crate::cli::opening::open;
use crate::cli::output::{print_json, print_plain};
use crate::cli::session::Session;
use crate::cli::{EngineArgs, ModelArg, PrefixArgs};

const EXAMPLES: &str = "\
Examples:
  lapwing rerank -m bge-reranker-base.gguf \"What floats?\" \"a small boat\" \"a bowl of rice\"
  lapwing rerank -m FILE.gguf --top 3 --json --lines \"What floats?\" - < documents.txt

The model reads the query together with each document, and scores the pair. It needs a file with a
head for that: a reranker such as bge-reranker, jina-reranker or Qwen3-Reranker. Scores are the
model's own: any number, larger for a better document, or a probability (Qwen3-Reranker). Control
tokens in the texts are plain text.

Prints a line for each document, best first: its score, its number among the documents, from 0, and
its text, with tabs between them.

With --json:
  {\"model\":\"PATH\",\"tokens\":N,
   \"results\":[{\"index\":N,\"score\":X,\"tokens\":N,\"document\":\"TEXT\"},…]}";

/// Options of `rerank`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The query
    #[arg(value_name = "QUERY")]
    query: String,

    /// The documents; a single `-` reads stdin
    #[arg(value_name = "DOCUMENT", conflicts_with = "file")]
    documents: Vec<String>,

    /// Read the document from FILE; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Take each line of the file or of stdin as a document; empty lines are left out
    #[arg(long)]
    lines: bool,

    /// Print only the N best documents
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    prefix: PrefixArgs,
}

#[derive(Serialize)]
struct Report<'a> {
    model: String,
    tokens: usize,
    results: Vec<DocumentReport<'a>>,
}

#[derive(Serialize)]
struct DocumentReport<'a> {
    index: usize,
    score: f32,
    tokens: usize,
    document: &'a str,
}

/// Prints documents, the best first.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let documents = texts(args.documents, args.file, args.lines).await?;
    let builder = args.engine.builder_to_score(&args.model.model, session).await?;
    let engine = open(args.prefix.applied(builder), session).await?;
    let request = RerankRequest::new(args.query, documents.clone());
    let mut ranking = engine.rerank(request).await?;
    engine.shutdown(Shutdown::Drain).await?;
    ranking.documents.truncate(args.top.unwrap_or(usize::MAX));
    let report = report(&engine, &ranking, &documents);
    if session.json {
        return print_json(&report);
    }
    let mut lines = String::new();
    for found in &report.results {
        let text = found.document.replace(['\n', '\r', '\t'], " ");
        lines.push_str(&format!("{}\t{}\t{text}\n", found.score, found.index));
    }
    print_plain(&lines)
}

fn report<'a>(engine: &Engine, ranking: &Ranking, documents: &'a [String]) -> Report<'a> {
    let results = ranking.documents.iter().map(|found| DocumentReport {
        index: found.index,
        score: found.score,
        tokens: found.tokens,
        document: documents.get(found.index).map_or("", String::as_str),
    });
    Report {
        model: engine.model_path().display().to_string(),
        tokens: ranking.tokens,
        results: results.collect(),
    }
}
