//! Options of KV events.

use clap::builder::PossibleValuesParser;
use lapwing_serve::{KvEventsConfig, KvEventsForm};

use crate::cli::failure::Failure;

/// Options of KV events.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "KV events")]
pub(crate) struct KvEventsArgs {
    /// Publish what the prefix cache stores and removes, in vLLM's format, for routers
    ///
    /// As in tcp://127.0.0.1:5557. Each further model has the next port. docs/kv_events.md describes the messages.
    #[arg(long, value_name = "ADDRESS")]
    kv_events: Option<String>,

    /// Where readers ask for KV events that they have missed
    ///
    /// As in tcp://127.0.0.1:6557. Each further model has the next port.
    #[arg(long, value_name = "ADDRESS")]
    kv_events_replay: Option<String>,

    /// Topic of KV events; {model} stands for the name of the model [default: {model}]
    #[arg(long, value_name = "TOPIC", hide_short_help = true)]
    kv_events_topic: Option<String>,

    /// Form of KV events: map, that of vLLM since 2026, or array, that of before [default: map]
    #[arg(long, value_name = "FORM", hide_short_help = true,
          value_parser = PossibleValuesParser::new(KvEventsForm::NAMES), hide_possible_values = true)]
    kv_events_form: Option<String>,
}

impl KvEventsArgs {
    /// Puts what is given in the place of the settings.
    pub(crate) fn apply(&self, config: &mut KvEventsConfig) -> Result<(), Failure> {
        if self.kv_events.is_some() {
            config.address.clone_from(&self.kv_events);
        }
        if self.kv_events_replay.is_some() {
            config.replay.clone_from(&self.kv_events_replay);
        }
        if let Some(topic) = &self.kv_events_topic {
            config.topic.clone_from(topic);
        }
        if let Some(form) = &self.kv_events_form {
            config.form = form.parse().map_err(Failure::failed)?;
        }
        Ok(())
    }
}
