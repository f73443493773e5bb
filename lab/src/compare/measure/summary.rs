//! What a comparison says of its runs.

use super::Measuring;
use super::runs::of;
use crate::compare::{Comparison, LengthComparison, Progress};
use lapwing_engine::Engine;
use lapwing_engine::devices::DeviceSpec;
use lapwing_engine::error::Error;
use lapwing_kernels::device::DeviceInfo;

/// Settings that all engines of a comparison share.
pub(super) struct Facts {
    model: String,
    devices: Vec<String>,
    infos: Vec<DeviceInfo>,
    isa: String,
    cost_source: String,
    rounds_alike: bool,
}

impl Facts {
    pub(super) fn of(engine: &Engine) -> Facts {
        let name = engine.model_path().file_stem();
        Facts {
            model: name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            devices: engine.devices().iter().map(ToString::to_string).collect(),
            infos: engine.device_infos().to_vec(),
            isa: engine.isa().to_owned(),
            cost_source: engine.cost_source(),
            rounds_alike: round_alike(engine.devices()),
        }
    }
}

impl<F: FnMut(&Progress) + Send> Measuring<'_, F> {
    /// The comparison of what was measured.
    pub(super) fn comparison(mut self) -> Result<Comparison, Error> {
        let compare = self.compare;
        let mut lengths = Vec::new();
        for (number, tokens) in compare.lengths.iter().enumerate() {
            let mut length = LengthComparison {
                tokens: *tokens,
                runs: Vec::new(),
                absent: Vec::new(),
                fastest: 0,
                chosen_by_auto: self.choices.get(&number).cloned(),
                same_tokens: true,
            };
            for (at, candidate) in compare.candidates.iter().enumerate() {
                let runs = self.runs.remove(&(at, number)).filter(|runs| !runs.runs.is_empty());
                match (runs, self.absent.get(&at)) {
                    (Some(runs), _) => length.runs.push(of(candidate, runs)),
                    (None, Some(reason)) => {
                        length.absent.push((candidate.name().to_owned(), reason.clone()));
                    }
                    (None, None) => {}
                }
            }
            let times = length.runs.iter().map(|run| run.ttft_ms.median).enumerate();
            length.fastest = times.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at);
            length.same_tokens = length.runs.iter().all(|run| run.ids == length.runs[0].ids);
            lengths.push(length);
        }
        let facts = self.facts.take().filter(|_| lengths.iter().all(|l| !l.runs.is_empty()));
        let Some(Facts { model, devices, infos, isa, cost_source, rounds_alike }) = facts else {
            let reasons: Vec<String> = self.absent.into_values().collect();
            let found = format!("none that is possible on these devices ({})", reasons.join("; "));
            return Err(Error::config("strategies", found, "at least one that is possible"));
        };
        let (tokens, repetitions) = (compare.tokens, compare.repetitions);
        Ok(Comparison {
            model,
            devices,
            infos,
            isa,
            tokens,
            repetitions,
            cost_source,
            rounds_alike,
            lengths,
        })
    }
}

/// Whether all strategies must generate the same tokens: every device computes with the same kernels, or
/// there is one device.
fn round_alike(devices: &[DeviceSpec]) -> bool {
    devices.len() == 1 || devices.iter().all(DeviceSpec::rounds_as_cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_library_beside_other_devices_may_change_a_token() {
        for (devices, is_alike) in [
            ("cpu", true),
            ("gpu=opencl", true),
            ("cpu+gpu=opencl", false),
            ("cpu+gpu=throttled", true),
            ("cpu+npu", true),
            ("cpu+npu=openvino", false),
            ("cpu+npu=qnn", false),
        ] {
            let devices_of = DeviceSpec::list(devices).unwrap();
            assert_eq!(round_alike(&devices_of), is_alike, "{devices}");
        }
    }
}
