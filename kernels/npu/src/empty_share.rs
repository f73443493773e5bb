//! A share without output channels.

use std::ops::Range;

use super::backend::PreparedGraph;
use super::spec::GraphSpec;
use lapwing_model::device::{DeviceError, Observer};

/// A share without output channels, of a product with fewer channels than shares: there is nothing to
/// compute, and no library accepts such a graph.
pub struct NoColumns {
    inputs: Vec<Vec<f32>>,
    nodes: Range<usize>,
    bytes: u64,
}

impl NoColumns {
    /// The graph of this specification, if it has no output channels.
    pub fn of(spec: &GraphSpec) -> Option<NoColumns> {
        spec.outputs.iter().all(|port| port.width == 0).then(|| NoColumns {
            inputs: spec.inputs.iter().map(|port| vec![0.0; spec.key.rows * port.width]).collect(),
            nodes: spec.key.nodes.clone(),
            bytes: spec.buffer_bytes(),
        })
    }
}

impl PreparedGraph for NoColumns {
    fn input(&mut self, port: usize) -> &mut [f32] {
        &mut self.inputs[port]
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        observer.nodes_done(self.nodes.clone());
        Ok(())
    }

    fn output(&self, _: usize) -> &[f32] {
        &[]
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
