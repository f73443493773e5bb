//! Live engines of oracles.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use lapwing_actors::drive::live::{Live, LiveDevice, LiveParts};
use lapwing_actors::drive::wait::Waits;
use lapwing_kernels::device::{Device, SlotPool};
use lapwing_kernels::kv::KvPool;
use lapwing_plan::time::TimeModel;
use lapwing_traces::Recorder;

use super::{Parts, Setup, recorder};
use crate::late::LateThread;

/// A live engine of oracles that records into `recorder`.
pub fn live(setup: &Setup, requests_max: usize, recorder: &Recorder) -> (Live, KvPool) {
    start(setup, requests_max, recorder, |_| None, Waits::for_devices(setup.devices))
}

/// A live engine of oracles that are throttled to the setup's rates, with these wait modes.
pub fn throttled(setup: &Setup, recorder: &Recorder, waits: Waits) -> (Live, KvPool) {
    let rate = |device: usize| setup.rates[device % setup.rates.len()];
    start(setup, 4, recorder, |device| Some(Arc::new(rate(device))), waits)
}

/// A live engine whose late devices run at their own pace, and whose others are throttled to the setup's model.
pub fn paced(setup: &Setup, recorder: &Recorder) -> Live {
    let is_late = |device: usize| setup.late.get(device).is_some_and(|depth| *depth > 0);
    let time = |device| setup.time.clone().filter(|_| !is_late(device));
    start(setup, 4, recorder, time, Waits::for_devices(setup.devices)).0
}

/// A live engine of oracles that are throttled to a model other than the planner's.
pub fn held_to(setup: &Setup, time: &Arc<dyn TimeModel>) -> Live {
    let waits = Waits::for_devices(setup.devices);
    start(setup, 4, &recorder(), |_| Some(Arc::clone(time)), waits).0
}

fn start(
    setup: &Setup,
    requests_max: usize,
    recorder: &Recorder,
    time: impl Fn(usize) -> Option<Arc<dyn TimeModel>>,
    waits: Waits,
) -> (Live, KvPool) {
    let late = |info, oracle, live: (&Arc<AtomicUsize>, usize)| -> Box<dyn Device> {
        Box::new(LateThread::new(info, oracle, live.0))
    };
    let Parts { scheduler, devices, graph, pool, .. } = setup.parts_with(late);
    let device = |(at, device)| LiveDevice { device, time: time(at), cores: None };
    let live = Live::start(LiveParts {
        scheduler,
        devices: devices.into_iter().enumerate().map(device).collect(),
        graphs: vec![graph],
        slots: SlotPool::default(),
        requests_max,
        permits: setup.config.permits,
        waits,
        recorder: recorder.clone(),
    });
    (live.expect("threads"), pool)
}
