//! Completes the stages of a strategy to a route: adds the transfers between memory domains and sampling.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lapwing_kernels::device::MemoryDomain;
use lapwing_kernels::graph::ValueId;

use crate::device::DeviceId;
use crate::route::Flow;
use crate::stage::{Stage, StagePart, StageWork};
use crate::validate::RouteFor;

/// Stages with what each hands on.
pub(crate) type Completed = (Vec<Stage>, Vec<Flow>);

/// Completes checked compute stages. Before each stage, values that it reads from another memory
/// are transferred: out of a device's memory by that device, into a device's memory by the reading
/// device. A stage that is divided between devices reads and writes host memory. The last stage
/// chooses tokens: on the thread of the device that computed the logits, which may stay in that
/// device's memory.
pub(crate) fn complete(compute: Vec<Stage>, of: RouteFor<'_>) -> Completed {
    let (places, holders) = (BTreeMap::new(), BTreeMap::new());
    let mut route = Completing { of, stages: Vec::new(), flows: Vec::new(), places, holders };
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
    /// The devices that have computed all of a live value, or have read it.
    holders: BTreeMap<ValueId, BTreeSet<DeviceId>>,
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
        let arrivals = self.arrivals(&stage, &writes, &live_out);
        self.flows.push(Flow { writes: writes.into(), live_out: live_out.into(), arrivals });
        self.stages.push(stage);
    }

    /// Counts the values that each part of a stage reads and its device lacks; the devices have them from then on.
    fn arrivals(
        &mut self,
        stage: &Stage,
        writes: &[ValueId],
        live_out: &[ValueId],
    ) -> Arc<[usize]> {
        let read = self.of.graph.live_in(stage.nodes.clone());
        let lacking = |part: &StagePart| {
            let held = read.iter().filter_map(|value| self.holders.get(value));
            held.filter(|devices| !devices.contains(&part.device)).count()
        };
        let arrivals = stage.parts.iter().map(lacking).collect();
        for value in &read {
            let devices = self.holders.entry(*value).or_default();
            devices.extend(stage.parts.iter().map(|part| part.device));
        }
        self.holders.retain(|value, _| live_out.contains(value));
        let computed: BTreeSet<DeviceId> = stage.only_device().into_iter().collect();
        self.holders.extend(writes.iter().map(|value| (*value, computed.clone())));
        arrivals
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
        self.flows.push(Flow { writes: Arc::clone(&values), live_out, arrivals: Arc::default() });
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
