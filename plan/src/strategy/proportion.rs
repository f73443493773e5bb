//! In which proportion a row cut divides output channels.

use std::ops::Range;

use lapwing_kernels::part::{Part, Share};

use super::options::Ratio;
use super::route_builder::RouteBuilder;
use crate::device::DeviceId;
use crate::time::Job;

/// How many units of a block's output channels each device gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proportion {
    /// These units, the same for every block.
    Units(Vec<usize>),
    /// In proportion to the devices' predicted speeds for the block. In a decode step, which is bound
    /// by memory, these are the rates at which they read its weights.
    Speed,
}

impl Proportion {
    /// The ratio, for so many devices.
    pub(crate) fn of(ratio: &Ratio, devices: usize) -> Proportion {
        Proportion::Units(ratio.units().iter().copied().take(devices).collect())
    }

    /// Units of each device. `wholes`: each device with the part that computes the whole block.
    pub(crate) fn units(
        &self,
        stages: &RouteBuilder<'_>,
        nodes: &Range<usize>,
        wholes: &[(DeviceId, Part)],
    ) -> Vec<usize> {
        match self {
            Proportion::Units(units) => units.clone(),
            Proportion::Speed => {
                let batch = stages.input.batch(stages.shape);
                let speeds = wholes.iter().map(|(device, part)| {
                    let (first, end, queued) = (nodes.start, nodes.end, true);
                    let job = Job { queued, ..Job::alone(first..end, part, &batch) };
                    let time = stages.input.cost.job_time(*device, &job);
                    // Times are below 2^64 seconds, so speeds have a finite sum.
                    time.as_secs_f64().max(1e-12).recip()
                });
                let graph = stages.input.graph;
                let outputs = graph.nodes()[nodes.clone()].iter().map(|node| node.output);
                let width = outputs.map(|value| graph.value(value).width).max();
                units(&speeds.collect::<Vec<f64>>(), width.unwrap_or(0))
            }
        }
    }
}

/// Output channels in proportion to speeds, in units of [`Share::ALIGN`], to which borders are rounded up.
fn units(speeds: &[f64], width: usize) -> Vec<usize> {
    let of = width.div_ceil(Share::ALIGN).max(1);
    let sum: f64 = speeds.iter().sum();
    let (mut before, mut border) = (0.0, 0);
    let unit = |speed: &f64| {
        before += speed;
        let from = std::mem::replace(&mut border, (before / sum * of as f64).round() as usize);
        border - from
    };
    speeds.iter().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_all_channels_in_proportion_to_speeds() {
        for (speeds, width, expected) in [
            (&[1.0, 1.0][..], 128, &[2, 2][..]),
            (&[1.0, 3.0], 128, &[1, 3]),
            (&[2.0, 1.0, 1.0], 256, &[4, 2, 2]),
            (&[1.0, 1.0, 1.0], 128, &[1, 2, 1]),
            (&[1.0, 1e6], 4096, &[0, 128]),
            (&[1e12, 1e-9], 128, &[4, 0]),
            (&[5.0], 96, &[3]),
            (&[1.0, 1.0], 0, &[1, 0]),
        ] {
            assert_eq!(units(speeds, width), expected, "{speeds:?}");
        }
    }
}
