//! Which experts each device has.

use std::ops::Range;

use crate::device::DeviceId;
use crate::strategy::options::Ratio;

/// How many units of each layer's experts each device has, one device after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Division {
    pub(super) units: Vec<(DeviceId, usize)>,
    /// In words, by what.
    pub(super) by: String,
}

impl Division {
    /// The units of a ratio, for as many devices as it has numbers.
    pub(super) fn by_ratio(devices: &[DeviceId], ratio: &Ratio) -> Division {
        let units = devices.iter().copied().zip(ratio.units().iter().copied()).collect();
        Division { units, by: ratio.to_string() }
    }

    /// The experts of each device out of `count`; a device without any is left out.
    pub(super) fn of_layer(&self, count: usize) -> Vec<(DeviceId, Range<usize>)> {
        let of: usize = self.units.iter().map(|(_, units)| units).sum::<usize>().max(1);
        let (mut upto, mut next) = (0, 0);
        let own = self.units.iter().map(|(device, units)| {
            upto += units;
            let end = (2 * count * upto + of) / (2 * of);
            (*device, std::mem::replace(&mut next, end)..end)
        });
        own.filter(|(_, own)| !own.is_empty()).collect()
    }

    /// The division of `count` experts in words; `name` names a device.
    pub(super) fn about<'a>(&self, count: usize, name: impl Fn(DeviceId) -> &'a str) -> String {
        let parts = self.of_layer(count);
        let of =
            |(device, own): &(DeviceId, Range<usize>)| format!("{} {}", own.len(), name(*device));
        let parts: Vec<String> = parts.iter().map(of).collect();
        format!("{}, {}", parts.join(" ‖ "), self.by)
    }
}

/// A time that grows with the experts of a device, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Line {
    /// With any.
    pub(super) fixed: f64,
    /// Of each.
    pub(super) each: f64,
}

impl Line {
    fn at(self, experts: usize) -> f64 {
        if experts == 0 { 0.0 } else { self.fixed + self.each * experts as f64 }
    }
}

/// Times of kinds of chunks on devices.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chunks {
    /// How many of them count.
    pub(super) weight: f64,
    /// The time on each device.
    pub(super) lines: Vec<Line>,
}

/// Gives `count` experts to devices, of which each has at most its limit, one by one: each to the device with which the time of all chunks
/// grows least, where that of a chunk is the time of its slowest device. If no device has room, the first gets the rest.
pub(super) fn divide(count: usize, limits: &[usize], chunks: &[Chunks]) -> Vec<usize> {
    let mut units = vec![0; limits.len()];
    for _ in 0..count {
        let time = |device: usize| {
            let at = |chunks: &Chunks, other: usize| {
                let own = units[other] + usize::from(other == device);
                chunks.weight * chunks.lines[other].at(own)
            };
            let slowest =
                |chunks: &Chunks| (0..units.len()).map(|d| at(chunks, d)).fold(0.0, f64::max);
            let all: f64 = chunks.iter().map(slowest).sum();
            let own: f64 = chunks.iter().map(|chunks| at(chunks, device)).sum();
            (all, own)
        };
        let free = (0..units.len()).filter(|device| units[*device] < limits[*device]);
        let least = free.min_by(|a, b| {
            let ([all, own], [of_all, of_own]) = (<[f64; 2]>::from(time(*a)), time(*b).into());
            all.total_cmp(&of_all).then(own.total_cmp(&of_own))
        });
        units[least.unwrap_or(0)] += 1;
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fixed: f64, each: f64) -> Line {
        Line { fixed, each }
    }

    /// The least time of one kind of chunks over all divisions between two devices.
    fn least(count: usize, limits: &[usize], lines: &[Line]) -> f64 {
        let fits = |n: &usize| *n <= limits[0] && count - n <= limits[1];
        let time = |n: usize| lines[0].at(n).max(lines[1].at(count - n));
        (0..=count).filter(fits).map(time).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_slowest_device_ends_as_early_as_it_can() {
        for lines in [
            [line(0.0, 1.0), line(0.0, 1.0)],
            [line(0.0, 1.0), line(5.0, 3.0)],
            [line(30.0, 0.5), line(0.0, 2.0)],
            [line(1000.0, 1.0), line(0.0, 1.0)],
        ] {
            for limits in [[99, 99], [20, 99], [99, 7], [0, 99]] {
                for count in [1, 2, 8, 33, 64] {
                    let chunks = [Chunks { weight: 1.0, lines: lines.to_vec() }];
                    let units = divide(count, &limits, &chunks);
                    assert_eq!(units.iter().sum::<usize>(), count);
                    let time = lines[0].at(units[0]).max(lines[1].at(units[1]));
                    assert_eq!(time, least(count, &limits, &lines), "{lines:?} {limits:?} {count}");
                }
            }
        }
    }

    #[test]
    fn of_prompts_and_steps_the_heavier_decide() {
        let prompt = vec![line(0.0, 10.0), line(0.0, 1.0)];
        let step = vec![line(0.0, 1.0), line(0.0, 1.0)];
        let units = |weight: f64| {
            let steps = Chunks { weight, lines: step.clone() };
            divide(64, &[64, 64], &[Chunks { weight: 1.0, lines: prompt.clone() }, steps])
        };
        assert_eq!(units(1e-6), [5, 59]);
        assert_eq!(units(1e6), [32, 32]);
    }

    #[test]
    fn where_nothing_has_room_the_first_has_the_rest() {
        let chunks = [Chunks { weight: 1.0, lines: vec![line(0.0, 1.0); 2] }];
        assert_eq!(divide(8, &[2, 1], &chunks), [7, 1]);
    }

    #[test]
    fn every_expert_has_one_device() {
        let devices: Vec<DeviceId> = (0..3).map(DeviceId).collect();
        for units in [[1, 1, 1], [6, 2, 1], [1, 0, 1000], [0, 1, 0], [500, 1, 1]] {
            for count in 1..70 {
                let units = devices.iter().copied().zip(units).collect();
                let parts = Division { units, by: String::new() }.of_layer(count);
                let mut next = 0;
                for (_, own) in &parts {
                    assert!(own.start == next && !own.is_empty(), "{parts:?}");
                    next = own.end;
                }
                assert_eq!(next, count);
            }
        }
    }
}
