//! Options that change attention, and the reports of them, as text and as JSON.

use clap::Args;
use lapwing_engine::{AttentionRule, Engine, EngineBuilder, Error, KvSharing};

use serde::{Deserialize, Serialize};

use super::opening::Given;
use super::session::Session;

/// Options that change attention.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct AttentionArgs {
    /// Mask of attention, for research: window=N, dilated=COUNTxSTRIDE, block-sparse=LEN:ROW-KEY,… or
    /// causal; after LAYER: or FIRST-LAST: for some layers, as in 0-11:window=512. May be repeated: the
    /// last one that covers a layer counts. A model's own window stays in force [default: the model's own]
    #[arg(long, value_name = "[LAYERS:]MASK", hide_short_help = true)]
    attention: Vec<AttentionRule>,

    /// Share keys and values, for research: layers=N, each group of N consecutive layers uses those of its
    /// first layer; heads=N, N KV heads remain; or both, as in layers=2,heads=1. Costs much accuracy
    #[arg(long, value_name = "layers=N|heads=N", hide_short_help = true)]
    share_kv: Option<KvSharing>,
}

impl AttentionArgs {
    /// The builder with these settings.
    pub(crate) fn apply(&self, builder: EngineBuilder) -> EngineBuilder {
        let builder = self.attention.iter().cloned().fold(builder, EngineBuilder::attention);
        builder.given(self.share_kv, EngineBuilder::share_kv)
    }

    /// Options with values that give another process the same settings.
    pub(crate) fn to_args(&self) -> impl Iterator<Item = (&'static str, String)> {
        let rules = self.attention.iter().map(|rule| ("--attention", rule.to_string()));
        rules.chain(self.share_kv.map(|sharing| ("--share-kv", sharing.to_string())))
    }
}

/// What an engine changes of a model's attention; two fields of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AttentionChanges {
    /// Text form of the masks in force, one for each run of layers; `None` for the model's own.
    #[serde(rename = "attention")]
    pub(crate) masks: Option<Vec<String>>,
    /// Which layers or heads share keys and values, if any do.
    pub(crate) share_kv: Option<String>,
}

impl AttentionChanges {
    /// Those of a running engine.
    pub(crate) fn of(engine: &Engine) -> AttentionChanges {
        AttentionChanges::new(engine.attention(), engine.shared_kv())
    }

    /// Those of an engine to be built. Reads only the file's header.
    pub(crate) fn of_builder(builder: &EngineBuilder) -> Result<AttentionChanges, Error> {
        let masks = builder.attention_masks()?;
        Ok(AttentionChanges::new(masks.as_deref(), builder.shared_kv()))
    }

    fn new(masks: Option<&[AttentionRule]>, share_kv: Option<KvSharing>) -> AttentionChanges {
        AttentionChanges {
            masks: masks.map(|masks| masks.iter().map(ToString::to_string).collect()),
            share_kv: share_kv.map(|sharing| sharing.to_string()),
        }
    }

    /// Says on stderr what is changed.
    pub(crate) fn note(&self, session: &Session) {
        self.lines().lines().for_each(|line| session.note(line));
    }

    /// A line of text about the masks, and one about the sharing, as far as they are given.
    pub(crate) fn lines(&self) -> String {
        let masks = self.masks.as_ref().map(|masks| format!("attention: {}\n", masks.join(" ")));
        let sharing = self.share_kv.as_ref();
        let sharing = sharing.map(|sharing| format!("shared keys and values: {sharing}\n"));
        [masks, sharing].into_iter().flatten().collect()
    }
}
