//! Completes the stages of a strategy to a route: adds the transfers between memory domains and sampling.

use std::collections::BTreeMap;
use std::sync::Arc;

use lapwing_kernels::device::MemoryDomain;
use lapwing_kernels::graph::ValueId;

use crate::device::DeviceId;
use crate::route::Flow;
use crate::stage::{Stage, StageWork};
use crate::validate::RouteFor;

/// Stages with what each hands on.
pub(crate) type Completed = (Vec<Stage>, Vec<Flow>);

/// Completes checked compute stages. Before each stage, values that it reads from another memory
/// are transferred: out of a device's memory by that device, into a device's memory by the reading
/// device. A stage that is divided between devices reads and writes host memory. The last stage
/// chooses tokens: on the thread of the device that computed the logits, which may stay in that
/// device's memory.
pub(crate) fn complete(compute: Vec<Stage>, of: RouteFor<'_>) -> Completed {
    let mut route =
        Completing { of, stages: Vec::new(), flows: Vec::new(), places: BTreeMap::new() };
    for stage in compute {
        route.push(stage);
    }
    route.decide();
    (route.stages, route.flows)
}

struct Completing<'a> {
    of: RouteFor<'a>,
    stages: Vec<Stage>,
    flows: Vec<Flow>,
    /// The device whose memory holds each live value; values in host memory are not listed.
    places: BTreeMap<ValueId, DeviceId>,
}

impl Completing<'_> {
    fn memory(&self, device: DeviceId) -> MemoryDomain {
        self.of.devices[device.0].memory
    }

    /// Appends a compute stage, with the transfers before it.
    fn push(&mut self, stage: Stage) {
        let graph = self.of.graph;
        let device = stage.only_device().filter(|d| self.memory(*d) != MemoryDomain::Host);
        self.transfer(&graph.live_in(stage.nodes.clone()), device);
        let writes = graph.writes(stage.nodes.clone());
        let live_out = graph.live_out(stage.nodes.clone());
        self.places.retain(|value, _| live_out.contains(value));
        if let Some(device) = device {
            self.places.extend(writes.iter().map(|value| (*value, device)));
        }
        self.flows.push(Flow { writes: writes.into(), live_out: live_out.into() });
        self.stages.push(stage);
    }

    /// Brings values into the memory of a device, or into host memory.
    fn transfer(&mut self, values: &[ValueId], to: Option<DeviceId>) {
        let target = to.map_or(MemoryDomain::Host, |device| self.memory(device));
        let mut out: BTreeMap<DeviceId, Vec<ValueId>> = BTreeMap::new();
        let mut into: Vec<ValueId> = Vec::new();
        for value in values {
            match self.places.get(value).copied() {
                Some(device) if self.memory(device) == target => {}
                Some(device) => {
                    out.entry(device).or_default().push(*value);
                    into.push(*value);
                }
                None => into.push(*value),
            }
        }
        for (device, values) in out {
            values.iter().for_each(|value| _ = self.places.remove(value));
            self.add_transfer(device, values, MemoryDomain::Host);
        }
        if let Some(device) = to
            && !into.is_empty()
        {
            self.places.extend(into.iter().map(|value| (*value, device)));
            self.add_transfer(device, into, target);
        }
    }

    fn add_transfer(&mut self, device: DeviceId, values: Vec<ValueId>, to: MemoryDomain) {
        let live_out = self.flows.last().map_or_else(Arc::default, |f| Arc::clone(&f.live_out));
        let values: Arc<[ValueId]> = values.into();
        let at = self.stages.last().map_or(0, |stage| stage.nodes.end);
        self.flows.push(Flow { writes: Arc::clone(&values), live_out });
        self.stages.push(Stage {
            work: StageWork::Transfer { values, to },
            ..Stage::whole(device, at..at)
        });
    }

    /// Appends sampling.
    fn decide(&mut self) {
        let (logits, passed_on) = (self.of.graph.output(), self.of.graph.passed_on());
        let last = self.stages.last().and_then(|stage| stage.parts.first()).map(|p| p.device);
        let is_elsewhere =
            |value: &ValueId| self.places.get(value).is_some_and(|device| Some(*device) != last);
        if let Some(value) = passed_on.filter(is_elsewhere) {
            self.transfer(&[value], None);
        }
        let at = self.of.graph.nodes().len();
        self.flows.push(Flow::default());
        self.stages.push(Stage {
            work: StageWork::Decide { logits, passed_on },
            ..Stage::whole(last.unwrap_or(DeviceId(0)), at..at)
        });
    }
}
