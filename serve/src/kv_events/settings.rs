//! Settings of KV events.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// Settings of KV events ([`ServeConfig::kv_events`](crate::ServeConfig::kv_events)).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct KvEventsConfig {
    /// Where the events of the first model are published, as in `tcp://127.0.0.1:5557`, or `tcp://*:5557` for all addresses of the
    /// machine; those of each further model at the next port. Without it, none are.
    pub address: Option<String>,
    /// Where batches are repeated on request, with ports as above.
    pub replay: Option<String>,
    /// Topic of the messages; `{model}` stands for the name of the model.
    pub topic: String,
    /// Form of an event.
    pub form: KvEventsForm,
    /// Batches of a model that are kept for readers that are slow or ask for them again, at most 64 MiB of them.
    pub batches_max: usize,
}

impl Default for KvEventsConfig {
    fn default() -> KvEventsConfig {
        KvEventsConfig {
            address: None,
            replay: None,
            topic: "{model}".to_owned(),
            form: KvEventsForm::default(),
            batches_max: 10_000,
        }
    }
}

/// How an event is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvEventsForm {
    /// As a map with the names of its fields, as vLLM does since 2026.
    #[default]
    Map,
    /// As a list, as vLLM did before; repeated batches then have no topic.
    Array,
}

impl KvEventsForm {
    /// Names of all forms.
    pub const NAMES: [&'static str; 2] = ["map", "array"];
}

impl fmt::Display for KvEventsForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KvEventsForm::NAMES[*self as usize])
    }
}

impl FromStr for KvEventsForm {
    type Err = String;

    fn from_str(text: &str) -> Result<KvEventsForm, String> {
        [KvEventsForm::Map, KvEventsForm::Array]
            .into_iter()
            .find(|form| form.to_string() == text)
            .ok_or_else(|| format!("'{text}' is no form of events; map and array are"))
    }
}
