//! What a model needs on some devices, and how fast it runs on them.

use std::time::Duration;

/// What a model needs on some devices of this machine, and how fast it runs on them, as predicted from its header.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fit {
    /// Names of the devices.
    pub devices: Vec<String>,
    /// The strategy that places ops on them.
    pub strategy: String,
    /// Tokens of the context that the memory is stated for.
    pub context: usize,
    /// Largest context of the model, by its training.
    pub trained_context: usize,
    /// Largest context, up to that of the training, with which it fits; 0 if not even its weights fit, `None` if the free memory
    /// is not known.
    pub largest_context: Option<usize>,
    /// The memories that it takes: that of the host first, then those that devices have of their own.
    pub memory: Vec<MemoryNeed>,
    /// Predicted times.
    pub speed: Speed,
    /// Where the times come from.
    pub rates: String,
    /// What a user should know: that a model was split between processors, or that ops are not measured.
    pub notes: Vec<String>,
}

/// Bytes that a model takes of one memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryNeed {
    /// Name of the device whose memory it is; `None` for that of the host.
    pub device: Option<String>,
    /// Weights, in the form in which the devices hold them.
    pub weights: u64,
    /// Keys and values of one sequence that fills the context.
    pub kv: u64,
    /// Buffers for values between ops, whatever the context is; an upper bound, as they are filled when they are first used.
    pub buffers: u64,
    /// Bytes that can be taken; `None` if that is not known. Of a device's own memory, nine tenths, as for an engine.
    pub free: Option<u64>,
    /// Of the weights, those that can stay in a mapped file, and are then read from the disk when they are used.
    pub mappable: u64,
}

/// Predicted times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Speed {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Time from the start of the prompt to its first token, without that of tokenising it.
    pub first_token: Duration,
    /// Time of a decode step with nothing in the context; `None` for an encoder.
    pub step: Option<Duration>,
    /// Time of the decode step that fills the context; `None` for an encoder.
    pub step_at_context: Option<Duration>,
}

impl MemoryNeed {
    /// Bytes of all that it takes.
    pub fn needed(&self) -> u64 {
        self.weights.saturating_add(self.kv).saturating_add(self.buffers)
    }

    /// Whether it fits; `None` if the free memory is not known.
    pub fn fits(&self) -> Option<bool> {
        self.free.map(|free| self.needed() <= free)
    }

    /// Whether it fits only if weights are read from the disk when they are used.
    pub fn runs_from_disk(&self) -> bool {
        let rest = self.needed().saturating_sub(self.mappable);
        self.fits() == Some(false)
            && self.free.is_some_and(|free| self.mappable > 0 && rest <= free)
    }

    /// Tokens whose keys and values fit beside the rest; 0 if the rest does not fit, and no limit if there are no keys and values.
    pub(crate) fn tokens(&self, kv_of: u64, tokens: u64) -> Option<u64> {
        let fixed = self.weights.saturating_add(self.buffers);
        let room = self.free?.checked_sub(fixed);
        Some(match room {
            None => 0,
            Some(room) => {
                room.checked_div(kv_of).map_or(u64::MAX, |pages| pages.saturating_mul(tokens))
            }
        })
    }
}

impl Fit {
    /// Whether the model runs with the context; `None` if a memory's free bytes are not known, and the others suffice.
    pub fn fits(&self) -> Option<bool> {
        let each = || self.memory.iter().map(MemoryNeed::fits);
        match each().any(|fits| fits == Some(false)) {
            true => Some(false),
            false => each().collect::<Option<Vec<bool>>>().map(|_| true),
        }
    }

    /// Whether the model runs, but weights are read from the disk when they are used, because they do not fit into the host's memory. The
    /// predicted times are those without reading.
    pub fn runs_from_disk(&self) -> bool {
        let runs = |need: &MemoryNeed| need.fits() != Some(false) || need.runs_from_disk();
        self.fits() == Some(false) && self.memory.iter().all(runs)
    }

    /// Bytes of all memories together.
    pub fn needed(&self) -> u64 {
        self.memory.iter().map(MemoryNeed::needed).fold(0, u64::saturating_add)
    }

    /// The first memory that is too small, or else that of the host.
    pub fn tightest(&self) -> Option<&MemoryNeed> {
        let small = self.memory.iter().find(|need| need.fits() == Some(false));
        small.or_else(|| self.memory.first())
    }

    /// Tokens per second of decode with nothing in the context; `None` for an encoder.
    pub fn tokens_per_second(&self) -> Option<f64> {
        per_second(self.speed.step)
    }

    /// As [`tokens_per_second`](Fit::tokens_per_second), at the end of the context.
    pub fn tokens_per_second_at_context(&self) -> Option<f64> {
        per_second(self.speed.step_at_context)
    }

    /// An estimate for a model that differs in the formats of its weights only, from the ratio of its bytes to the bytes of this one:
    /// whether it fits, and its tokens per second, which are proportional where decode is bound by reading the weights.
    pub fn scaled(&self, ratio: f64) -> (Option<bool>, Option<f64>) {
        let scaled = |need: &MemoryNeed| {
            let weights = (need.weights as f64 * ratio) as u64;
            let mappable = (need.mappable as f64 * ratio) as u64;
            MemoryNeed { weights, mappable, ..need.clone() }
        };
        let fit = Fit { memory: self.memory.iter().map(scaled).collect(), ..self.clone() };
        (fit.fits(), self.tokens_per_second().map(|speed| speed / ratio))
    }
}

fn per_second(step: Option<Duration>) -> Option<f64> {
    step.map(|step| step.as_secs_f64()).filter(|seconds| *seconds > 0.0).map(f64::recip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(weights: u64, kv: u64, free: Option<u64>) -> MemoryNeed {
        MemoryNeed { device: None, weights, kv, buffers: 10, free, mappable: 0 }
    }

    fn fit(memory: Vec<MemoryNeed>) -> Fit {
        let step = Some(Duration::from_millis(20));
        Fit {
            devices: vec!["cpu".to_owned()],
            strategy: "cpu-only".to_owned(),
            context: 100,
            trained_context: 1000,
            largest_context: None,
            memory,
            speed: Speed {
                prompt: 64,
                first_token: Duration::from_secs(1),
                step,
                step_at_context: Some(Duration::ZERO),
            },
            rates: String::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_model_fits_if_it_fits_into_every_memory() {
        let (small, large, unknown) =
            (need(100, 50, Some(159)), need(100, 50, Some(160)), need(100, 50, None));
        assert_eq!(fit(vec![large.clone(), large.clone()]).fits(), Some(true));
        assert_eq!(fit(vec![large.clone(), unknown.clone()]).fits(), None);
        let no = fit(vec![unknown, large, small.clone()]);
        assert_eq!((no.fits(), no.needed()), (Some(false), 3 * 160));
        assert_eq!(no.tightest(), Some(&small));
        assert!(!no.runs_from_disk());
    }

    #[test]
    fn a_model_runs_from_the_disk_if_the_rest_fits() {
        let host =
            |weights, free| MemoryNeed { mappable: weights, ..need(weights, 50, Some(free)) };
        let runs = |memory: Vec<MemoryNeed>| fit(memory).runs_from_disk();
        assert!(runs(vec![host(1000, 60)]) && !runs(vec![host(1000, 59)]));
        assert!(!runs(vec![host(1000, 1060)]), "it fits");
        let gpu = MemoryNeed { device: Some("gpu".to_owned()), ..need(100, 0, Some(50)) };
        assert!(!runs(vec![host(1000, 60), gpu]), "the memory of a GPU is too small");
    }

    #[test]
    fn as_many_tokens_fit_as_there_is_room_for_whole_pages() {
        let pages = |free: u64, of: u64| need(100, 50, Some(free)).tokens(of, 32);
        assert_eq!(pages(109, 8), Some(0));
        assert_eq!(pages(110, 8), Some(0));
        assert_eq!(pages(110 + 17, 8), Some(64));
        assert_eq!(pages(110, 0), Some(u64::MAX), "nothing is kept of a token");
        assert_eq!(need(1, 1, None).tokens(8, 32), None);
    }

    #[test]
    fn another_format_is_estimated_from_its_bytes() {
        let fit = fit(vec![need(100, 50, Some(120))]);
        assert_eq!((fit.fits(), fit.tokens_per_second()), (Some(false), Some(50.0)));
        assert_eq!(fit.scaled(0.5), (Some(true), Some(100.0)));
        assert_eq!(fit.scaled(2.0).0, Some(false));
        assert_eq!(fit.tokens_per_second_at_context(), None, "no step takes no time");
    }
}
