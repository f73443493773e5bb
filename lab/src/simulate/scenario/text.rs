//! Describes a scenario as text.

use std::fmt;

use lapwing_actors::simulate::OwnDevice;
use lapwing_plan::strategy::{MomentRoutes, registry};

use super::{Choice, Interference, Scenario};
use crate::simulate::error::SimulateError;
use crate::simulate::names::SETTINGS;

fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The strategy that chooses routes by the moment.
const BY_MOMENT: &str = "auto";

/// Strategies without an option for the order of operands: they use no NPU, or choose themselves.
const WITHOUT_ORDER: [&str; 4] = ["cpu-only", "gpu-only", "layer-split", "tensor-level"];

impl Scenario {
    /// Notes for readers of the results: settings without effect, and lengths that the model was not
    /// trained for.
    ///
    /// # Errors
    /// [`SimulateError::Model`].
    pub fn notes(&self) -> Result<Vec<String>, SimulateError> {
        let mut notes = self.notes_on_settings();
        notes.extend(self.note_on_length()?);
        Ok(notes)
    }

    /// Those of the [`notes`](Scenario::notes) that are about settings without effect, for runs of requests with lengths of their own.
    pub fn notes_on_settings(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.order_swap
            && let Choice::Named(name) = &self.choice
            && WITHOUT_ORDER.iter().any(|other| name.split(':').next() == Some(other))
        {
            let others = registry().iter().map(|known| known.name());
            let others = others.filter(|name| !WITHOUT_ORDER.contains(name)).collect::<Vec<_>>();
            notes.push(format!(
                "order-swap off has no effect on {name}; it has on {}",
                others.join(", ")
            ));
        }
        if self.moment != MomentRoutes::default() && self.strategy_name() != BY_MOMENT {
            notes.push(format!(
                "moment {} has no effect on {}; it has on {BY_MOMENT}",
                self.moment.name(),
                self.strategy_name()
            ));
        }
        let own: Vec<&str> = self.own.iter().map(OwnDevice::name).collect();
        if !self.fast_sync && !own.is_empty() {
            let own = own.join(", ");
            notes.push(format!(
                "fast-sync off does not change the times of {own}, whose law is its own"
            ));
        }
        notes
    }

    /// What to know about a prompt and an answer that are longer than the model was trained for.
    fn note_on_length(&self) -> Result<Option<String>, SimulateError> {
        let (tokens, context) = (self.tokens(), self.load_model()?.0.config.context);
        Ok((tokens > context).then(|| {
            format!(
                "{tokens} tokens exceed the context of {context} tokens that {} was trained for",
                self.model
            )
        }))
    }

    /// Tokens of prompt and answer together.
    fn tokens(&self) -> usize {
        self.prompt.saturating_add((self.decode + 1).saturating_mul(self.verify))
    }

    /// All settings and the changed numbers of the processors, as keys and values of
    /// [`set`](Scenario::set). Devices that are not chosen, a chunk size that the strategy chooses and a default number of
    /// chunks in flight are empty.
    pub fn settings(&self) -> Vec<(String, String)> {
        let value = |key: &str| match key {
            "soc" => self.soc_name(),
            "device" => self.chosen_devices().unwrap_or_default().to_owned(),
            "model" => self.model.clone(),
            "prompt" => self.prompt.to_string(),
            "decode" => self.decode.to_string(),
            "strategy" => self.strategy_name().to_owned(),
            "fast-sync" => on(self.fast_sync).to_owned(),
            "order-swap" => on(self.order_swap).to_owned(),
            "moment" => self.moment.name().to_owned(),
            "chunk" => self.chunk.map_or(String::new(), |rows| rows.to_string()),
            "permits" => self.permits.map_or(String::new(), |permits| permits.to_string()),
            "interference" => self.interference.to_string(),
            "verify" => self.verify.to_string(),
            "stepped-preparation" => on(self.stepped_preparation).to_owned(),
            "seed" => self.seed.to_string(),
            number => self.processors.value(number).map_or(String::new(), |n| n.to_string()),
        };
        let mut keys = SETTINGS.to_vec();
        for change in &self.changes {
            if !keys.contains(&&*change.key) {
                keys.push(&change.key);
            }
        }
        keys.into_iter().map(|key| (key.to_owned(), value(key))).collect()
    }

    /// All settings of a run, stored as metadata of its timeline.
    pub(in crate::simulate) fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![
            ("program".to_owned(), concat!("lapwing ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("clock".to_owned(), "virtual".to_owned()),
            ("policy".to_owned(), self.policy_name().to_owned()),
        ];
        let settings = self.settings().into_iter().take(SETTINGS.len());
        // A run says which devices compute if none are chosen.
        let is_said = |(key, value): &(String, String)| key != "device" || !value.is_empty();
        facts.extend(settings.filter(is_said).map(|(key, value)| match value.is_empty() {
            true if key == "chunk" => (key, "by the strategy".to_owned()),
            true => (key, "default".to_owned()),
            false => (key.replace('-', " "), value),
        }));
        if !self.changes.is_empty() {
            let changes =
                self.changes.iter().map(|change| format!("{}={}", change.key, change.value));
            facts.push(("set".to_owned(), changes.collect::<Vec<_>>().join(",")));
        }
        facts
    }
}

impl fmt::Display for Scenario {
    /// All settings of a run except the numbers of the SoC, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own: Vec<&str> = self.own.iter().map(OwnDevice::name).collect();
        let devices = match self.chosen_devices() {
            Some(chosen) => format!(" ({chosen})"),
            None if own.is_empty() => String::new(),
            None => format!(" (with {})", own.join(", ")),
        };
        write!(
            f,
            "{} on {}{}, {}: {} tokens and {} decode steps, fast sync {}, order swap {}",
            self.model,
            self.soc_name(),
            devices,
            self.strategy_name(),
            self.prompt,
            self.decode,
            on(self.fast_sync),
            on(self.order_swap)
        )?;
        if self.moment != MomentRoutes::default() {
            write!(f, ", moment {}", self.moment.name())?;
        }
        if let Some(chunk) = self.chunk {
            write!(f, ", chunks of {chunk}")?;
        }
        if let Some(permits) = self.permits {
            write!(f, ", at most {permits} in flight")?;
        }
        if self.interference != Interference::None {
            write!(f, ", with a {}", self.interference)?;
        }
        if self.verify != 1 {
            write!(f, ", {} tokens per step", self.verify)?;
        }
        if self.stepped_preparation {
            write!(f, ", stepped preparation")?;
        }
        if self.seed != 0 {
            write!(f, ", seed {}", self.seed)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scenario({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::SETTINGS;

    #[test]
    fn different_scenarios_have_different_keys() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let changes = [
            ("soc", "ideal"),
            ("device", "npu+cpu"),
            ("model", "llama-2-7b"),
            ("prompt", "255"),
            ("decode", "31"),
            ("strategy", "pipe"),
            ("fast-sync", "off"),
            ("order-swap", "off"),
            ("moment", "off"),
            ("chunk", "64"),
            ("permits", "3"),
            ("interference", "game"),
            ("verify", "4"),
            ("stepped-preparation", "on"),
            ("seed", "7"),
            ("gpu.rate", "1.0001x"),
        ];
        assert!(SETTINGS.iter().all(|setting| changes.iter().any(|(key, _)| key == setting)));
        for (key, value) in changes {
            let mut other = base.clone();
            other.set(key, value).expect(key);
            assert_ne!(other.key(), base.key(), "{key}");
            assert_ne!(other.facts(), base.facts(), "{key} is no fact of a recording");
        }
    }

    #[test]
    fn a_scenario_with_another_policy_is_not_taken_for_the_same() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let own = base.clone().policy(lapwing_actors::policy::Fcfs);
        assert_ne!(own.key(), base.key());
        assert_eq!(own.key(), own.clone().key());
        assert_eq!(base.key(), base.clone().policy("fcfs").key());
        assert!(own.facts().contains(&("policy".to_owned(), "fcfs".to_owned())));
        let unknown = base.policy("best").run().expect_err("there is none");
        assert!(unknown.to_string().contains("one of fcfs"), "{unknown}");
    }

    #[test]
    fn a_setting_without_effect_is_noted() {
        let mut scenario = Scenario::new("sd8gen3").expect("a preset");
        assert_eq!(scenario.notes().expect("a model"), Vec::<String>::new());
        scenario.set("order-swap", "off").expect("a setting");
        assert!(scenario.notes().expect("a model")[0].contains("tensor-level"));
        scenario.set("strategy", "pipe").expect("a setting");
        assert_eq!(scenario.notes().expect("a model"), Vec::<String>::new());
        scenario.set("prompt", "8192").expect("a setting");
        assert!(scenario.notes().expect("a model")[0].contains("8192"));
    }
}
