//! The command line.

use std::path::PathBuf;

use clap::Parser;
use dynamo_backend_common::{CommonArgs, DisaggregationMode, WorkerConfig};
use lapwing_cli::engine_options::EngineOptions;

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

    /// Folder with the model's tokenizer, template and settings in the form of Hugging Face, which the frontend reads
    #[arg(long, value_name = "DIR", help_heading = "Model")]
    pub hf: PathBuf,

    /// Options of the engine.
    #[command(flatten)]
    pub engine: EngineOptions,

    /// Options of Dynamo.
    #[command(flatten)]
    pub dynamo: CommonArgs,
}

impl Options {
    /// Dynamo's settings: what its options and variables say, and file discovery if they do not say how workers are found.
    ///
    /// # Errors
    /// When they ask for a role that this worker does not have; the text says which ones it has.
    pub fn worker(&self) -> Result<WorkerConfig, String> {
        let dynamo = self.dynamo.clone();
        if dynamo.disaggregation_mode != DisaggregationMode::Aggregated || dynamo.route_to_encoder {
            return Err(format!(
                "--disaggregation-mode {} and --route-to-encoder are not supported: a worker computes prompts and answers itself; \
                 leave them out",
                dynamo.disaggregation_mode
            ));
        }
        let mut runtime = dynamo.runtime;
        runtime.discovery_backend.get_or_insert_with(|| "file".to_owned());
        Ok(WorkerConfig {
            namespace: dynamo.namespace,
            component: dynamo.component,
            endpoint: dynamo.endpoint,
            model_name: self.hf.display().to_string(),
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
