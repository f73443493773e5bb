//! Scenarios like `lapwing speculate`: drafts on two models whose passes take stated times.

use std::time::Duration;

use super::numbers::Numbers;
use super::subject::{Misfit, Subject, bad, length, rates, read, set_form, switch};
use crate::simulate::SimulateError;
use crate::simulate::speculation::{Acceptance, Pass, Speculation};

/// Texts that are generated with drafts.
#[derive(Clone)]
pub(super) struct Drafts {
    rates: Vec<f64>,
    /// Time of a draft model's pass, as a share of the target's.
    draft_time: f64,
    growth: f64,
    bandwidth: f64,
    seed: u64,
    base: Speculation,
}

const KEYS: [&str; 15] = [
    "acceptance",
    "draft-time",
    "draft-length",
    "schedule",
    "growth",
    "bandwidth",
    "one-device",
    "target-devices",
    "requests",
    "prompt",
    "tokens",
    "seed",
    "sync-bonus-pass",
    "pre-verify",
    "post-verify",
];

/// The unit of time does not matter.
const TARGET: Duration = Duration::from_millis(100);

impl Default for Drafts {
    fn default() -> Drafts {
        let pass = Pass { one: TARGET, growth: 0.0, bandwidth: 0.0 };
        let base = Speculation::new(pass, pass);
        Drafts { rates: vec![0.8], draft_time: 0.1, growth: 0.02, bandwidth: 0.0, seed: 0, base }
    }
}

impl Drafts {
    fn speculation(&self) -> Speculation {
        let Drafts { draft_time, growth, bandwidth, seed, .. } = *self;
        let pass = |share: f64| {
            let one = Duration::try_from_secs_f64(TARGET.as_secs_f64() * share);
            Pass { one: one.unwrap_or_default(), growth, bandwidth }
        };
        let acceptance = match self.rates[..] {
            [rate] => Acceptance::Independent { rate, seed },
            _ => Acceptance::ByPosition { rates: self.rates.as_slice().into(), seed },
        };
        let (target, draft) = (pass(1.0), pass(draft_time));
        Speculation { target, draft, acceptance, ..self.base.clone() }
    }
}

impl Subject for Drafts {
    fn keys(&self) -> Vec<String> {
        KEYS.map(str::to_owned).to_vec()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SimulateError> {
        let number = || read::<f64>(key, value, "it must be a number");
        let count = || read::<usize>(key, value, "it must be a whole number");
        match key {
            "acceptance" => self.rates = rates(key, value)?,
            "draft-time" => self.draft_time = number()?,
            "draft-length" => self.base.length = length(key, value)?,
            "schedule" => self.base.schedule = read(key, value, "it must be sync or async")?,
            "growth" => self.growth = number()?,
            "bandwidth" => self.bandwidth = number()?,
            "one-device" => self.base.own_device = !switch(key, value)?,
            "target-devices" => self.base.target_devices = count()?,
            "requests" => self.base.requests = count()?,
            "prompt" => self.base.prompt = count()?,
            "tokens" => self.base.tokens = count()?,
            "seed" => self.seed = read(key, value, "it must be a whole number")?,
            "sync-bonus-pass" | "pre-verify" | "post-verify" => {
                set_form(&mut self.base.form, key, value)?;
            }
            _ => return Err(bad(key, value, format!("'speculate' has {}", KEYS.join(", ")))),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Misfit> {
        self.speculation().check().map_err(|error| Misfit::new("", error.to_string()))
    }

    fn run(&self) -> Result<Numbers, SimulateError> {
        let outcome = self.speculation().run();
        let outcome = outcome.map_err(|error| SimulateError::Run { reason: error.to_string() })?;
        let drafts = &outcome.drafts;
        let numbers = Numbers::default()
            .with("speed_up", Some(outcome.speed_up()))
            .with("tokens_per_step", Some(drafts.tokens_per_step()))
            .with("accepted", drafts.acceptance())
            .with("draft_rows", Some(outcome.draft_rows))
            .with("wasted_rows", Some(drafts.wasted as f64))
            .with("draft_rows_wasted", Some(drafts.draft_rows_wasted as f64));
        Ok(numbers)
    }

    fn copy(&self) -> Box<dyn Subject> {
        Box::new(self.clone())
    }

    fn figures(&self) -> &'static [&'static str] {
        &["speed_up", "tokens_per_step"]
    }
}
