//! Options that choose a model and set up the engine.

use std::path::PathBuf;

use clap::Args;
use lapwing::{Engine, EngineBuilder};
use lapwing_kernels::cpu::Isa;

use super::at_least_one;
use crate::commands::failure::Failure;

/// Which model.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArg {
    /// A .gguf file, a name from `lapwing models`, or hf:owner/repo/file.gguf[@revision]
    #[arg(short, long, value_name = "MODEL", default_value = "smollm2-135m-instruct")]
    pub(crate) model: String,
}

/// How the engine is set up.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Threads that compute [default: all that the machine runs at once]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    pub(crate) threads: Option<usize>,

    /// Most prompt tokens computed in one go [default: 512]
    #[arg(long, value_name = "ROWS", value_parser = at_least_one)]
    pub(crate) chunk: Option<usize>,

    /// Instruction set; `lapwing devices` lists them [default: the best one]
    #[arg(long, value_name = "NAME")]
    pub(crate) isa: Option<String>,
}

impl EngineArgs {
    /// The builder with these settings.
    pub(crate) fn builder(&self, model: PathBuf) -> EngineBuilder {
        let mut builder = Engine::builder().model(model);
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        if let Some(rows) = self.chunk {
            builder = builder.chunk_rows(rows);
        }
        if let Some(isa) = &self.isa {
            builder = builder.isa(isa);
        }
        builder
    }

    /// Checks what can be checked without a model, so that nothing is fetched in vain.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let known: Vec<_> = Isa::available().into_iter().map(Isa::name).collect();
        match &self.isa {
            Some(isa) if !known.contains(&isa.as_str()) => Err(Failure::usage(format!(
                "--isa is '{isa}', but this machine has {}",
                known.join(", ")
            ))),
            _ => Ok(()),
        }
    }

    /// Threads that will compute.
    pub(crate) fn thread_count(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(all)
    }

    /// Name of the instruction set that will be used.
    pub(crate) fn isa_name(&self) -> String {
        self.isa.clone().unwrap_or_else(|| Isa::best().name().to_owned())
    }
}
