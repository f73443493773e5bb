//! Names of a model's stages and ops in a recording.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::graph::{Graph, Node};
use lapwing_plan::Phase;
use lapwing_traces::Recorder;
use lapwing_traces::event::NameId;
use lapwing_traces::timeline::FUSED;

/// A model's graph, and the names of its stages and ops.
#[derive(Debug)]
pub(super) struct ModelNames {
    pub(super) graph: Arc<Graph>,
    /// Role of each node of the graph; filled at the first event.
    roles: Vec<NameId>,
    /// Names of stages that are not the whole graph.
    stages: HashMap<Range<usize>, NameId>,
    /// Names of nodes that are computed together.
    fused: HashMap<Range<usize>, NameId>,
}

impl ModelNames {
    pub(super) fn new(graph: &Arc<Graph>) -> ModelNames {
        ModelNames {
            graph: Arc::clone(graph),
            roles: Vec::new(),
            stages: HashMap::new(),
            fused: HashMap::new(),
        }
    }

    /// The graph. Registers the names of its nodes.
    pub(super) fn start(&mut self, recorder: &Recorder) -> &Arc<Graph> {
        if self.roles.is_empty() {
            self.roles = self.graph.nodes().iter().map(|n| recorder.name(n.role)).collect();
        }
        &self.graph
    }

    /// The name of a stage that computes: the phase (one of `phases`) if the stage is the whole graph,
    /// otherwise the roles of its ops.
    pub(super) fn stage(
        &mut self,
        nodes: Range<usize>,
        phase: Phase,
        phases: [NameId; 3],
        recorder: &Recorder,
    ) -> NameId {
        let graph = Arc::clone(self.start(recorder));
        if nodes.len() == graph.nodes().len() {
            return phases[match phase {
                Phase::Prefill => 0,
                Phase::Decode => 1,
                Phase::Mixed => 2,
            }];
        }
        if nodes.len() == 1 {
            return self.roles[nodes.start];
        }
        let entry = self.stages.entry(nodes);
        *entry.or_insert_with_key(|nodes| recorder.name(&roles_of(&graph, nodes)))
    }

    /// The name of nodes that are computed together: their roles.
    pub(super) fn dispatch(&mut self, nodes: Range<usize>, recorder: &Recorder) -> NameId {
        if nodes.len() == 1 {
            return self.roles[nodes.start];
        }
        *self.fused.entry(nodes).or_insert_with_key(|nodes| {
            let nodes = &self.graph.nodes()[nodes.clone()];
            let roles: Vec<&str> = nodes.iter().map(|node| node.role).collect();
            recorder.name(&roles.join(FUSED))
        })
    }
}

/// The roles of the first and the last of these nodes.
pub(super) fn roles_of(graph: &Graph, nodes: &Range<usize>) -> String {
    let role = |node: usize| graph.nodes()[node].role;
    format!("{} … {}", role(nodes.start), role(nodes.end - 1))
}

/// The layer that all of these nodes belong to.
pub(super) fn layer_of(nodes: &[Node]) -> Option<u16> {
    let layer = nodes.first()?.layer?;
    let one = nodes.last().is_some_and(|last| last.layer == Some(layer));
    u16::try_from(layer).ok().filter(|_| one)
}
