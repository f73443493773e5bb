//! Puts an engine in virtual time together.

use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, RunId};
use lapwing_plan::DeviceId;
use lapwing_traces::{Clock, Nanos, Recorder, RecorderConfig};

use super::environment::Environment;
use super::events::What;
use super::parts::{SimulatedDevice, SimulationParts, VirtualClock};
use super::sharing::{Due, Sharing};
use super::{Actor, Simulation};
use crate::drive::record::{CallerTrace, PrepareTrace, SchedulerTrace, WorkerTrace};
use crate::worker::Worker;

impl Simulation {
    /// An engine at time 0.
    pub fn new(parts: SimulationParts) -> Simulation {
        let order: Vec<usize> = (0..parts.devices.len()).collect();
        Simulation::with_actors(parts, &order, RecorderConfig::default())
    }

    /// An engine at time 0 whose recorder takes no memory and has no room: one of many.
    pub fn unrecorded(parts: SimulationParts) -> Simulation {
        let order: Vec<usize> = (0..parts.devices.len()).collect();
        let config = RecorderConfig { ring_events: 0, events_max: 0, ..RecorderConfig::default() };
        Simulation::with_actors(parts, &order, config)
    }

    /// An engine whose actors are registered in the order of these numbers.
    fn with_actors(parts: SimulationParts, order: &[usize], config: RecorderConfig) -> Simulation {
        let SimulationParts { scheduler, devices, graphs, slots, copy_rate } = parts;
        let clock = Arc::new(VirtualClock::default());
        let recorder = Recorder::new(Arc::clone(&clock) as Arc<dyn Clock>, config);
        recorder.set_meta("clock", "virtual");
        let (caller, trace) = (CallerTrace::new(&recorder), SchedulerTrace::new(&recorder));
        let actor = |(number, mut device): (usize, SimulatedDevice)| {
            // Virtual time decides when the device is polled, so no callback is needed.
            device.device.start(Arc::new(|| {}));
            let DeviceInfo { name, depth, .. } = device.device.info().clone();
            let lane = device.device.preparer();
            Actor {
                worker: Worker::new(DeviceId(number), name.clone(), depth),
                trace: WorkerTrace::new(&recorder, &name, &graphs),
                lane: lane.map(|preparer| (preparer, PrepareTrace::new(&recorder, &name))),
                device,
                completed: VecDeque::new(),
                queue: VecDeque::new(),
                running: false,
                begun: None,
                next_run: RunId::default(),
                merging: false,
            }
        };
        let mut devices: Vec<Option<SimulatedDevice>> = devices.into_iter().map(Some).collect();
        let mut places = vec![0; devices.len()];
        let mut actors = Vec::with_capacity(devices.len());
        for number in order {
            if let Some(device) = devices[*number].take() {
                places[*number] = actors.len();
                actors.push(actor((*number, device)));
            }
        }
        Simulation {
            clock,
            recorder,
            caller,
            trace,
            scheduler,
            actors,
            places,
            graphs,
            slots,
            copy_rate,
            events: BinaryHeap::new(),
            next_event: 0,
            work: 0,
            sharing: None,
            busy: Duration::ZERO,
            stopped: false,
        }
    }

    /// As [`new`](Simulation::new), with devices in an environment that they share, and their actors registered in
    /// the order of these numbers, each of which must occur once. Only the order of the recording's
    /// lanes and of [`usage`](Simulation::usage) depends on it.
    pub fn registered(parts: SimulationParts, mut env: Environment, order: &[usize]) -> Simulation {
        let mut simulation = Simulation::with_actors(parts, order, RecorderConfig::default());
        if let Some(renderer) = &mut env.gpu_interference {
            renderer.device = DeviceId(simulation.places[renderer.device.0]);
        }
        let names = simulation.actors.iter().map(|actor| actor.worker.device().to_owned());
        let names: Vec<String> = names.collect();
        let renders = env.gpu_interference.is_some();
        simulation.sharing = Some(Sharing::new(env, &names));
        if renders {
            simulation.push(Nanos(0), What::Due(Due::Frame));
        }
        simulation
    }
}
