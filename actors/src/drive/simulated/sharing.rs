//! Runs that share memory bandwidth and are stalled by a renderer.

use std::time::Duration;

use lapwing_kernels::device::Step;
use lapwing_traces::Nanos;
use lapwing_traces::analysis::concurrent::Counting;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use super::environment::{DeviceUsage, Environment, Usage};
use super::noise::{fnv, normal};
use crate::chunk::Chunk;
use crate::drive::modelled::{Segment, SegmentKind};

mod bound;
mod running;
mod speeds;

use bound::Bound;
pub(super) use running::Ran;
use running::Running;
use speeds::slowed;

/// A future event of devices that share resources.
pub(super) enum Due {
    /// A run's segment ends.
    Tick(usize, u64),
    /// A frame is due.
    Frame,
    /// A frame is finished.
    Drawn,
}

/// State of the renderer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Drawing {
    #[default]
    Idle,
    /// A frame waits for the running kernel.
    Due,
    Draws,
}

/// State of the devices that share an environment.
pub(super) struct Sharing {
    env: Environment,
    lanes: Vec<Option<Running>>,
    /// Bytes and time of each device's merge, if it is merging.
    merging: Vec<Option<(u64, Duration)>>,
    /// Lanes in order of their devices' names. Sums and events follow this order, so results do not
    /// depend on the order of registration.
    order: Vec<usize>,
    rngs: Vec<ChaCha8Rng>,
    settled: Nanos,
    drawing: Drawing,
    next_tick: u64,
    usage: Usage,
    counting: Counting,
    bound: Bound,
}

impl Sharing {
    /// Devices of these names, at time 0.
    pub(super) fn new(env: Environment, names: &[String]) -> Sharing {
        let seed = env.noise.map_or(0, |noise| noise.seed);
        // Seeded by name, so a device's random numbers do not depend on the order of devices.
        let rng = |name: &String| ChaCha8Rng::seed_from_u64(seed ^ fnv(name));
        let devices = vec![DeviceUsage::default(); names.len()];
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|lane| &names[*lane]);
        Sharing {
            lanes: names.iter().map(|_| None).collect(),
            merging: vec![None; names.len()],
            order,
            rngs: names.iter().map(rng).collect(),
            settled: Nanos(0),
            drawing: Drawing::Idle,
            next_tick: 0,
            usage: Usage { devices, ..Usage::default() },
            counting: Counting::default(),
            bound: Bound::default(),
            env,
        }
    }

    pub(super) fn env(&self) -> &Environment {
        &self.env
    }

    /// The devices' usage until now.
    pub(super) fn usage(&self, now: Nanos) -> Usage {
        let mut usage = self.usage.clone();
        self.book(&mut usage, now.0.saturating_sub(self.settled.0));
        usage.critical = Nanos(0) + self.bound.length();
        usage.concurrent = self.counting.until(now);
        usage
    }

    /// Number of finished frames.
    pub(super) fn frames(&self) -> usize {
        self.usage.frames
    }

    /// Number of runs and merges in progress.
    pub(super) fn in_flight(&self) -> usize {
        self.lanes.iter().flatten().count() + self.merging.iter().flatten().count()
    }

    /// Resets the dependency chains.
    pub(super) fn forget_chains(&mut self) {
        self.bound = Bound::default();
    }

    /// Begins a merge on a device, which takes `time`.
    pub(super) fn merge(&mut self, now: Nanos, lane: usize, bytes: u64, time: Duration) {
        self.settle(now);
        self.merging[lane] = Some((bytes, time));
    }

    /// Ends a merge.
    pub(super) fn merged(&mut self, now: Nanos, lane: usize, chunk: &Chunk) {
        self.settle(now);
        let Some((bytes, time)) = self.merging[lane].take() else { return };
        self.bound.merged(chunk, time);
        self.usage.merges += 1;
        self.usage.copying = self.usage.copying + time;
        // The runtime counts four bytes per value; the modelled system stores two.
        self.usage.bytes += bytes as f64 / 2.0;
    }

    /// Begins a run on a device.
    pub(super) fn start(&mut self, now: Nanos, lane: usize, mut ran: Ran) {
        self.settle(now);
        self.usage.hand_overs += usize::from(ran.delivery.is_hand_off());
        if let Some(noise) = self.env.noise {
            let factor = (1.0 + noise.spread * normal(&mut self.rngs[lane])).max(0.1);
            for segment in ran.segments.iter_mut().filter(|s| s.kind != SegmentKind::Overhead) {
                segment.time = segment.time.mul_f64(factor);
            }
        }
        let prepares =
            |segment: &&Segment| matches!(segment.kind, SegmentKind::Step(Step::Prepared { .. }));
        for segment in ran.segments.iter().filter(prepares) {
            self.usage.preparing_ms += segment.time.as_nanos() as f64 / 1e6;
        }
        self.usage.devices[lane].runs += 1;
        self.counting.begin(now, lane, ran.kinds());
        self.lanes[lane] = Some(Running::new(ran, now));
    }

    /// Advances all runs to the time `now`.
    fn settle(&mut self, now: Nanos) {
        let nanos = now.0 - self.settled.0;
        self.settled = now;
        if nanos == 0 {
            return;
        }
        let mut usage = std::mem::take(&mut self.usage);
        self.book(&mut usage, nanos);
        self.usage = usage;
        for run in self.lanes.iter_mut().flatten() {
            run.left -= run.rate * nanos as f64;
        }
    }

    /// Adds the devices' usage in the `nanos` nanoseconds after the settled time.
    fn book(&self, usage: &mut Usage, nanos: u64) {
        let runs = || self.lanes.iter().flatten().filter(|run| run.computes());
        let computing = runs().count();
        usage.any.0 += if computing > 0 { nanos } else { 0 };
        usage.several.0 += if computing > 1 { nanos } else { 0 };
        for lane in self.order.iter().copied() {
            let (run, device) = (&self.lanes[lane], &mut usage.devices[lane]);
            let (together, time) = (nanos * u64::from(computing > 1), &mut device.idle);
            let time = match run {
                None if self.merging[lane].is_some() => &mut device.merging,
                None => time,
                Some(run) if run.rate == 0.0 => &mut device.held,
                Some(run) if !run.computes() => &mut device.waiting,
                Some(run) => {
                    usage.bytes += run.demand() * run.rate * nanos as f64;
                    device.co_run.0 += together;
                    &mut device.busy
                }
            };
            time.0 += nanos;
        }
    }

    /// Divides the bandwidth again. Returns the new events of all runs whose speed has changed.
    pub(super) fn share(&mut self, now: Nanos) -> Vec<(Nanos, Due)> {
        let mut speeds = (1.0, 1.0);
        if let Some(cap) = self.env.memory {
            let lanes = || self.order.iter().filter_map(|lane| self.lanes[*lane].as_ref());
            let runs = || lanes().filter(|run| run.rate > 0.0);
            let bound: f64 = runs().filter(|run| run.is_bound()).map(Running::demand).sum();
            let others: f64 = runs().filter(|run| !run.is_bound()).map(Running::demand).sum();
            speeds = slowed(cap, bound, others);
        }
        let mut due = Vec::new();
        for lane in self.order.iter().copied() {
            let Some(run) = self.lanes[lane].as_mut().filter(|run| run.rate > 0.0) else {
                continue;
            };
            let rate = if run.is_bound() { speeds.0 } else { speeds.1 };
            if run.tick > 0 && rate == run.rate {
                continue;
            }
            run.rate = rate;
            self.next_tick += 1;
            run.tick = self.next_tick;
            let nanos = (run.left / rate).max(0.0).ceil() as u64;
            due.push((Nanos(now.0.saturating_add(nanos)), Due::Tick(lane, run.tick)));
        }
        due
    }

    /// Ends a run's segment, unless its speed has changed. Returns the run after its last segment.
    pub(super) fn tick(&mut self, now: Nanos, lane: usize, tick: u64) -> Option<Ran> {
        if self.lanes[lane].as_ref().is_none_or(|run| run.tick != tick) {
            return None;
        }
        self.settle(now);
        let run = self.lanes[lane].as_mut()?;
        let usage = &mut self.usage.devices[lane];
        if run.kind() == Some(SegmentKind::Overhead) && run.ran.delivery.crossed() {
            // The second processor of a cut polls on its way back, too.
            let polls = if run.ran.delivery.part().part.is_whole() { 1 } else { 2 };
            usage.spinning = usage.spinning + (self.env.spin * polls).min(now.since(run.began));
        }
        run.leave(now);
        if !run.is_over() {
            return None;
        }
        let run = self.lanes[lane].take()?;
        self.counting.end(now, lane, run.ran.kinds());
        usage.alone = usage.alone + run.alone;
        self.bound.ran(run.ran.delivery.chunk(), run.alone);
        Some(Ran { segments: run.played, ..run.ran })
    }

    /// Marks a frame as due. Returns the time of the next frame.
    pub(super) fn frame(&mut self, now: Nanos) -> Option<Nanos> {
        let renderer = self.env.gpu_interference?;
        if self.drawing == Drawing::Idle {
            self.drawing = Drawing::Due;
        }
        (!renderer.period.is_zero()).then(|| now + renderer.period)
    }

    /// Draws the due frame if no kernel runs. Returns the time of its end.
    pub(super) fn draw(&mut self, now: Nanos) -> Option<Nanos> {
        let renderer = self.env.gpu_interference.filter(|_| self.drawing == Drawing::Due)?;
        self.settle(now);
        if let Some(run) = &mut self.lanes[renderer.device.0] {
            if !run.lets_in() {
                return None;
            }
            run.hold();
        }
        self.drawing = Drawing::Draws;
        Some(now + renderer.time)
    }

    /// Ends a frame.
    pub(super) fn drawn(&mut self, now: Nanos) {
        self.settle(now);
        self.drawing = Drawing::Idle;
        self.usage.frames += 1;
        let Some(renderer) = self.env.gpu_interference else { return };
        if let Some(run) = &mut self.lanes[renderer.device.0] {
            run.resume(now);
        }
    }

    /// Makes a run that has just started wait for the frame that is being drawn.
    pub(super) fn hold_for_frame(&mut self, lane: usize) {
        let draws = self.drawing == Drawing::Draws;
        let here = self.env.gpu_interference.is_some_and(|renderer| renderer.device.0 == lane);
        if let (true, Some(run)) = (draws && here, &mut self.lanes[lane]) {
            run.hold();
        }
    }
}
