//! The placement report: what runs where, with which kernels, and why.

use std::fmt;

use lapwing_actors::plan::Route;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;

use crate::config::Chosen;

/// What runs where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Name of the strategy that made the route.
    pub strategy: String,
    /// Why it made this route.
    pub reason: String,
    /// Stages, in order.
    pub stages: Vec<StagePlacement>,
}

/// One stage of the route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePlacement {
    /// Device that runs it.
    pub device: String,
    /// Number of ops.
    pub ops: usize,
    /// First and last layer, if it has any.
    pub layers: Option<(usize, usize)>,
    /// Kernels that the device uses, and why.
    pub kernels: String,
    /// Weight formats that it multiplies with, with the number of matrices of each.
    pub formats: Vec<(String, usize)>,
}

impl Placement {
    pub(crate) fn new(
        graph: &Graph,
        route: &Route,
        devices: &[String],
        strategy: String,
        chosen: &Chosen,
    ) -> Placement {
        let stages = route
            .stages
            .iter()
            .map(|stage| {
                let nodes = &graph.nodes()[stage.nodes.clone()];
                let layers = nodes.iter().filter_map(|n| n.layer);
                let mut formats: Vec<(String, usize)> = Vec::new();
                for node in nodes {
                    let Op::MatMul { weight, .. } = node.op else { continue };
                    let name = graph.weights()[weight.0].dtype.to_string();
                    match formats.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, count)) => *count += 1,
                        None => formats.push((name, 1)),
                    }
                }
                StagePlacement {
                    device: stage
                        .parts
                        .iter()
                        .map(|part| devices[part.device.0].as_str())
                        .collect::<Vec<_>>()
                        .join(" ‖ "),
                    ops: nodes.len(),
                    layers: layers.clone().min().zip(layers.max()),
                    kernels: format!(
                        "{} on {} threads ({})",
                        chosen.isa.name(),
                        chosen.threads,
                        chosen.isa.why()
                    ),
                    formats,
                }
            })
            .collect();
        Placement { strategy, reason: route.reason.clone(), stages }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "strategy {}: {}", self.strategy, self.reason)?;
        for (i, stage) in self.stages.iter().enumerate() {
            write!(f, "  stage {i}: {} ops on {}", stage.ops, stage.device)?;
            if let Some((first, last)) = stage.layers {
                write!(f, ", layers {first} to {last}")?;
            }
            writeln!(f, "\n    kernels: {}", stage.kernels)?;
            let formats: Vec<_> =
                stage.formats.iter().map(|(name, count)| format!("{count} × {name}")).collect();
            writeln!(f, "    matrices: {}", formats.join(", "))?;
        }
        Ok(())
    }
}
