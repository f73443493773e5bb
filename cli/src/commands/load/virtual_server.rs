//! Options of the modelled server of `load`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing_lab::load::{PassTime, Server, ServerOptions};

use crate::cli::failure::Failure;
use crate::cli::{EngineArgs, PrefixArgs, at_least_one, time};

/// A server in virtual time.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Virtual server")]
pub(crate) struct ServerArgs {
    /// Run in virtual time on a server with these measured costs, a JSON file: input tokens → output
    /// tokens → [batch size, seconds of a prompt, seconds of its output]
    #[arg(long, value_name = "FILE", conflicts_with = "experiment")]
    pub(super) server: Option<PathBuf>,

    /// Tokens that its KV cache holds [default: 10000, or as the experiment says]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    kv_tokens: Option<usize>,

    /// Requests that run at the same time at most [default: 256, or as the experiment says]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_running_requests: Option<usize>,

    /// Time of the host in each pass, beside that of the costs, as in 5ms [default: none, or as the
    /// experiment says]
    #[arg(long, value_name = "TIME", value_parser = time)]
    host: Option<Duration>,

    /// Compute prompts in passes of their own, between steps of generation
    #[arg(long)]
    prefill_alone: bool,

    /// Most prompt tokens that are admitted together [default: any number, or as the experiment says]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_prefill_tokens: Option<usize>,

    /// Steps of generation after which requests are admitted again [default: 0, or as the experiment says]
    #[arg(long, value_name = "K")]
    admit_every: Option<usize>,

    /// Seconds of virtual time after which it ends [default: when all requests have ended]
    #[arg(long, value_name = "S")]
    pub(super) until: Option<f64>,
}

/// The costs of a file.
pub(super) fn read_costs(path: &Path) -> Result<PassTime, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::file("read", path, &error))?;
    PassTime::fit(&text).map_err(|error| Failure::usage(error.to_string()))
}

impl ServerArgs {
    /// The server whose costs a file has, if one is given.
    pub(super) fn of_file(&self) -> Result<Option<Server>, Failure> {
        let Some(path) = &self.server else { return Ok(None) };
        Ok(Some(Server {
            time: read_costs(path)?,
            kv_tokens: 10_000,
            chunk_rows: 2048,
            sequences_max: 256,
            prefix_cache: true,
            token_gap: None,
            options: ServerOptions::default(),
        }))
    }

    /// A server with what the options say in place of its own settings.
    pub(super) fn changed(
        &self,
        server: Server,
        engine: &EngineArgs,
        prefix: &PrefixArgs,
    ) -> Server {
        let ServerOptions { host, reserve, mut batches } = server.options;
        batches.alone |= self.prefill_alone;
        batches.prompt_tokens = self.max_prefill_tokens.or(batches.prompt_tokens);
        batches.steps = self.admit_every.unwrap_or(batches.steps);
        Server {
            kv_tokens: self.kv_tokens.unwrap_or(server.kv_tokens),
            chunk_rows: engine.chunk.unwrap_or(server.chunk_rows),
            sequences_max: self.max_running_requests.unwrap_or(server.sequences_max),
            prefix_cache: server.prefix_cache && !prefix.is_off(),
            token_gap: engine.token_gap,
            options: ServerOptions {
                host: self.host.unwrap_or(host),
                reserve: engine.reserve.unwrap_or(reserve),
                batches,
            },
            ..server
        }
    }
}
