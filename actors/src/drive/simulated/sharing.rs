//! Runs that share memory bandwidth, and that a renderer holds up.

use std::time::Duration;

use lapwing_kernels::device::Step;
use lapwing_traces::Nanos;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use super::environment::{DeviceUsage, Environment, Usage};
use super::noise::{fnv, normal};
use crate::chunk::Chunk;
use crate::drive::modelled::{Did, Segment};

mod bound;
mod running;

use bound::Bound;
pub(super) use running::Ran;
use running::Running;

/// No run gets less than this share of its speed while others could give way.
const LEAST: f64 = 0.01;

/// Something that will happen.
pub(super) enum Due {
    /// A run's segment ends.
    Tick(usize, u64),
    /// A frame is due.
    Frame,
    /// A frame is finished.
    Drawn,
}

/// Where the renderer stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Drawing {
    #[default]
    Idle,
    /// Waits for the kernel that runs.
    Due,
    Draws,
}

/// Devices that share something.
pub(super) struct Sharing {
    env: Environment,
    lanes: Vec<Option<Running>>,
    /// Bytes and time of the parts that each device puts together.
    merging: Vec<Option<(u64, Duration)>>,
    /// Lanes by the names of their devices: the order in which sums are made and events announced,
    /// whatever the order in which devices were registered.
    order: Vec<usize>,
    rngs: Vec<ChaCha8Rng>,
    settled: Nanos,
    drawing: Drawing,
    next_tick: u64,
    usage: Usage,
    bound: Bound,
}

impl Sharing {
    /// Devices of these names, at time 0.
    pub(super) fn new(env: Environment, names: &[String]) -> Sharing {
        let seed = env.noise.map_or(0, |noise| noise.seed);
        // By name: whatever the order in which devices are named, each has its own sequence.
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
            bound: Bound::default(),
            env,
        }
    }

    pub(super) fn env(&self) -> &Environment {
        &self.env
    }

    /// What the devices did until now.
    pub(super) fn usage(&self, now: Nanos) -> Usage {
        let mut usage = self.usage.clone();
        self.book(&mut usage, now.0.saturating_sub(self.settled.0));
        usage.critical = Nanos(0) + self.bound.length();
        usage
    }

    /// Frames that were finished.
    pub(super) fn frames(&self) -> usize {
        self.usage.frames
    }

    /// Runs and merges that have not ended.
    pub(super) fn in_flight(&self) -> usize {
        self.lanes.iter().flatten().count() + self.merging.iter().flatten().count()
    }

    /// Chains of runs begin anew.
    pub(super) fn forget_chains(&mut self) {
        self.bound = Bound::default();
    }

    /// A device puts parts together, for which it takes that time.
    pub(super) fn merge(&mut self, now: Nanos, lane: usize, bytes: u64, time: Duration) {
        self.settle(now);
        self.merging[lane] = Some((bytes, time));
    }

    /// They are together.
    pub(super) fn merged(&mut self, now: Nanos, lane: usize, chunk: &Chunk) {
        self.settle(now);
        let Some((bytes, time)) = self.merging[lane].take() else { return };
        self.bound.merged(chunk, time);
        self.usage.merges += 1;
        self.usage.copying = self.usage.copying + time;
        // The runtime counts four bytes for a value, of which the system has two.
        self.usage.bytes += bytes as f64 / 2.0;
    }

    /// A device starts a run.
    pub(super) fn start(&mut self, now: Nanos, lane: usize, mut ran: Ran) {
        self.settle(now);
        self.usage.hand_overs += usize::from(ran.delivery.is_hand_off());
        if let Some(noise) = self.env.noise {
            let factor = (1.0 + noise.spread * normal(&mut self.rngs[lane])).max(0.1);
            for segment in ran.segments.iter_mut().filter(|s| s.did != Did::Overhead) {
                segment.time = segment.time.mul_f64(factor);
            }
        }
        let prepares = |segment: &&Segment| matches!(segment.did, Did::Step(Step::Prepared { .. }));
        for segment in ran.segments.iter().filter(prepares) {
            self.usage.preparing_ms += segment.time.as_nanos() as f64 / 1e6;
        }
        self.usage.devices[lane].runs += 1;
        self.lanes[lane] = Some(Running::new(ran, now));
    }

    /// Time passes.
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

    /// Adds what the devices do in so many nanoseconds from the settled time on.
    fn book(&self, usage: &mut Usage, nanos: u64) {
        let computing = self.lanes.iter().flatten().filter(|run| run.computes()).count();
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

    /// Shares the bandwidth again. Returns what will happen and when, of what has changed.
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

    /// A run's segment ends, if nothing has changed since that was announced. Returns the run if
    /// that was its last.
    pub(super) fn tick(&mut self, now: Nanos, lane: usize, tick: u64) -> Option<Ran> {
        if self.lanes[lane].as_ref().is_none_or(|run| run.tick != tick) {
            return None;
        }
        self.settle(now);
        let run = self.lanes[lane].as_mut()?;
        let usage = &mut self.usage.devices[lane];
        if run.did() == Some(Did::Overhead) && run.ran.delivery.crossed() {
            usage.spinning = usage.spinning + self.env.spin.min(now.since(run.began));
        }
        run.leave(now);
        if !run.is_over() {
            return None;
        }
        let run = self.lanes[lane].take()?;
        usage.alone = usage.alone + run.alone;
        self.bound.ran(run.ran.delivery.chunk(), run.alone);
        Some(Ran { segments: run.played, ..run.ran })
    }

    /// A frame is due. Returns when the next one is.
    pub(super) fn frame(&mut self, now: Nanos) -> Option<Nanos> {
        let renderer = self.env.gpu_interference?;
        if self.drawing == Drawing::Idle {
            self.drawing = Drawing::Due;
        }
        (!renderer.period.is_zero()).then(|| now + renderer.period)
    }

    /// Draws the frame that is due, if no kernel runs. Returns when it is finished.
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

    /// A frame is finished.
    pub(super) fn drawn(&mut self, now: Nanos) {
        self.settle(now);
        self.drawing = Drawing::Idle;
        self.usage.frames += 1;
        let Some(renderer) = self.env.gpu_interference else { return };
        if let Some(run) = &mut self.lanes[renderer.device.0] {
            run.resume(now);
        }
    }

    /// A run that has just started waits for the frame that is drawn.
    pub(super) fn hold_for_frame(&mut self, lane: usize) {
        let draws = self.drawing == Drawing::Draws;
        let here = self.env.gpu_interference.is_some_and(|renderer| renderer.device.0 == lane);
        if let (true, Some(run)) = (draws && here, &mut self.lanes[lane]) {
            run.hold();
        }
    }
}

/// Speeds, as shares of their own, of runs whose time is that of their bytes and of others, which
/// together could use `bound` and `others` GB/s of `cap`.
///
/// If that is more than there is, the former slow down alike, to what the others leave (device
/// model, 3.3), but never below [`LEAST`]; from there on the others give way, too, down to the same
/// share, and then all alike. All together never move more than `cap`. A run that can ask for more
/// takes it from the others: beside others, a faster device may make the whole slower.
fn slowed(cap: f64, bound: f64, others: f64) -> (f64, f64) {
    if bound + others <= cap {
        return (1.0, 1.0);
    }
    let left = (cap - others) / bound;
    if bound > 0.0 && left >= LEAST {
        return (left.min(1.0), 1.0);
    }
    let left = (cap - LEAST * bound) / others;
    if others > 0.0 && left >= LEAST {
        return (LEAST, left);
    }
    let alike = cap / (bound + others);
    (alike, alike)
}
