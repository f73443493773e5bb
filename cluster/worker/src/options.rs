//! The command line, and what it leads to.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use dynamo_backend_common::{CommonArgs, DisaggregationMode, WorkerConfig};
use lapwing_cli::engine_options::{EngineOptions, OptionsError};
use lapwing_engine::Error;
use lapwing_engine::hugging_face::{Existing, HfError, HfFolder};
use lapwing_engine::models::ModelCache;
use lapwing_engine::weights::WeightFile;

use crate::worker::LapwingWorker;

const EXAMPLES: &str = "\
Examples:
  lapwing-worker -m chat=model.gguf
  lapwing-worker -m smollm2-135m-instruct --device cpu+gpu --discovery-backend etcd

docs/cluster.md says how to start a frontend, how two machines find each other, and what fails how.";

/// A worker of NVIDIA Dynamo: one model, with all devices, strategies, drafts and policies of `lapwing serve`.
#[derive(Clone, Debug, Parser)]
#[command(name = "lapwing-worker", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Options {
    /// The model; NAME=MODEL gives it another name
    ///
    /// A .gguf file, a name from `lapwing models`, or hf:owner/repo[:QUANT].
    #[arg(short, long, value_name = "[NAME=]MODEL", help_heading = "Model")]
    pub model: String,

    /// Folder with the model's tokenizer, template and sizes in the form of Hugging Face, which the frontend reads
    /// [default: made from the model's file, in the cache of models]
    #[arg(long, value_name = "DIR", help_heading = "Model")]
    pub hf: Option<PathBuf>,

    /// Options of the engine.
    #[command(flatten)]
    pub engine: EngineOptions,

    /// Options of Dynamo.
    #[command(flatten)]
    pub dynamo: CommonArgs,
}

impl Options {
    /// The worker that the options describe, before its engine is started, and Dynamo's settings for it. A model by name is fetched if it is
    /// not on this machine.
    ///
    /// # Errors
    /// When options contradict each other, the model is not there, or the frontend cannot use its tokenizer.
    pub async fn open(self) -> Result<(LapwingWorker, WorkerConfig), StartError> {
        self.engine.check()?;
        let config = self.dynamo_config()?;
        let serve = self.engine.serve_config()?;
        let offer = self.engine.offer(&self.model).await?;
        let folder = match self.hf {
            Some(folder) => folder,
            None => hf_folder(offer.engine.model_file()).map_err(StartError::Folder)?,
        };
        let model_name = folder.display().to_string();
        Ok((LapwingWorker::new(offer, serve.kv_events), WorkerConfig { model_name, ..config }))
    }

    /// Dynamo's settings: what its options and variables say, and discovery by files if they do not say how workers are found.
    fn dynamo_config(&self) -> Result<WorkerConfig, StartError> {
        let dynamo = self.dynamo.clone();
        if dynamo.disaggregation_mode != DisaggregationMode::Aggregated || dynamo.route_to_encoder {
            return Err(StartError::Role);
        }
        let mut runtime = dynamo.runtime;
        runtime.discovery_backend.get_or_insert_with(|| "file".to_owned());
        Ok(WorkerConfig {
            namespace: dynamo.namespace,
            component: dynamo.component,
            endpoint: dynamo.endpoint,
            endpoint_types: dynamo.endpoint_types,
            custom_jinja_template: dynamo.custom_jinja_template,
            tool_call_parser: dynamo.dyn_tool_call_parser,
            reasoning_parser: dynamo.dyn_reasoning_parser,
            exclude_tools_when_tool_choice_none: dynamo.exclude_tools_when_tool_choice_none,
            runtime,
            enable_rl: dynamo.enable_rl,
            ..WorkerConfig::default()
        })
    }
}

/// The folder of a model's file, in the cache of models. Workers of one model have the same, so that one that ends takes nothing from others.
fn hf_folder(model: &Path) -> Result<PathBuf, Error> {
    let folder = HfFolder::new(WeightFile::open(model)?.metadata())?;
    if let Some(fault) = folder.template_fault() {
        tracing::warn!("conversations need --custom-jinja-template: {fault}");
    }
    let mut hasher = DefaultHasher::new();
    folder.files().iter().for_each(|file| (file.name, &file.bytes).hash(&mut hasher));
    let stem = model.file_stem().unwrap_or_default().to_string_lossy();
    let all = ModelCache::open(None)?.dir().join("hf");
    let path = all.join(format!("{stem}-{:016x}", hasher.finish()));
    std::fs::create_dir_all(&all).map_err(|source| HfError::Write { path: all, source })?;
    folder.write(&path, Existing::Replace)?;
    Ok(path)
}

/// Why a worker cannot be started. The message says what to do.
#[derive(Debug)]
pub enum StartError {
    /// Options of the engine are wrong, or the model is not there.
    Options(OptionsError),
    /// A role that this worker does not have.
    Role,
    /// The frontend cannot use the model's tokenizer.
    Folder(Error),
}

impl StartError {
    /// Prints the message to stderr, and returns the exit code: 2 for wrong usage, otherwise 1.
    pub fn report(&self) -> ExitCode {
        if let StartError::Options(error) = self {
            return error.report();
        }
        eprintln!("error: {self}");
        ExitCode::from(if matches!(self, StartError::Role) { 2 } else { 1 })
    }
}

impl From<OptionsError> for StartError {
    fn from(error: OptionsError) -> StartError {
        StartError::Options(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Options(error) => error.fmt(f),
            StartError::Role => f.write_str(
                "a worker computes prompts and answers itself: leave out --disaggregation-mode and --route-to-encoder",
            ),
            StartError::Folder(error) => write!(
                f,
                "the frontend's folder cannot be made from the model's file: {error}; --hf DIR names one of the model's makers"
            ),
        }
    }
}

impl std::error::Error for StartError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(more: &[&str]) -> Options {
        let words = ["lapwing-worker", "-m", "model.gguf"].iter().chain(more);
        Options::parse_from(words)
    }

    #[test]
    fn workers_find_each_other_by_files_unless_dynamo_is_told_otherwise() {
        let backend = |more: &[&str]| {
            let config = options(more).dynamo_config().expect("a worker");
            config.runtime.discovery_backend.expect("a backend")
        };
        assert_eq!(backend(&[]), "file");
        assert_eq!(backend(&["--discovery-backend", "etcd"]), "etcd");
    }

    #[test]
    fn roles_of_half_a_worker_are_refused() {
        for more in [&["--disaggregation-mode", "prefill"][..], &["--route-to-encoder"]] {
            assert!(matches!(options(more).dynamo_config(), Err(StartError::Role)), "{more:?}");
        }
    }
}
