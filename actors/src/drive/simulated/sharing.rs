//! Runs that share memory bandwidth, and that a renderer holds up.

use std::time::Duration;

use lapwing_kernels::device::{DeviceError, Step, TensorSet};
use lapwing_traces::Nanos;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use super::noise::{fnv, normal};
use super::surroundings::{DeviceUsage, Surroundings, Usage};
use crate::drive::modelled::{Did, Segment};
use crate::message::Delivery;

/// A run that is over.
pub(super) struct Ran {
    pub(super) delivery: Delivery,
    pub(super) result: Result<TensorSet, DeviceError>,
    pub(super) segments: Vec<Segment>,
}

/// A run on its way.
struct Running {
    ran: Ran,
    /// The present segment.
    at: usize,
    /// What is left of it, in nanoseconds of a device that has all memory for itself.
    left: f64,
    /// When it began.
    began: Nanos,
    /// Progress per nanosecond; 0 while a frame is drawn.
    rate: f64,
    /// The latest event that was announced for it.
    tick: u64,
    /// What it has done, with the times that it took.
    played: Vec<Segment>,
}

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
    around: Surroundings,
    lanes: Vec<Option<Running>>,
    /// Lanes by the names of their devices: the order in which sums are made and events announced,
    /// whatever the order in which devices were registered.
    order: Vec<usize>,
    rngs: Vec<ChaCha8Rng>,
    settled: Nanos,
    drawing: Drawing,
    next_tick: u64,
    usage: Usage,
}

impl Sharing {
    /// Devices of these names, at time 0.
    pub(super) fn new(around: Surroundings, names: &[String]) -> Sharing {
        let seed = around.noise.map_or(0, |noise| noise.seed);
        // By name: whatever the order in which devices are named, each has its own sequence.
        let rng = |name: &String| ChaCha8Rng::seed_from_u64(seed ^ fnv(name));
        let devices = vec![DeviceUsage::default(); names.len()];
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|lane| &names[*lane]);
        Sharing {
            lanes: names.iter().map(|_| None).collect(),
            order,
            rngs: names.iter().map(rng).collect(),
            settled: Nanos(0),
            drawing: Drawing::Idle,
            next_tick: 0,
            usage: Usage { devices, ..Usage::default() },
            around,
        }
    }

    pub(super) fn around(&self) -> &Surroundings {
        &self.around
    }

    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Parts were put together.
    pub(super) fn merged(&mut self, bytes: u64, time: Duration) {
        self.usage.merges += 1;
        self.usage.copying = self.usage.copying + time;
        // The runtime counts four bytes for a value, of which the system has two.
        self.usage.bytes += bytes as f64 / 2.0;
    }

    /// A device starts a run.
    pub(super) fn start(&mut self, now: Nanos, lane: usize, mut ran: Ran) {
        self.settle(now);
        self.usage.hand_overs += usize::from(ran.delivery.is_hand_over());
        if let Some(noise) = self.around.noise {
            let factor = (1.0 + noise.spread * normal(&mut self.rngs[lane])).max(0.1);
            for segment in ran.segments.iter_mut().filter(|s| s.did != Did::Overhead) {
                segment.time = segment.time.mul_f64(factor);
            }
        }
        let prepares = |segment: &&Segment| matches!(segment.did, Did::Step(Step::Prepared { .. }));
        for segment in ran.segments.iter().filter(prepares) {
            self.usage.preparing_ms += segment.time.as_nanos() as f64 / 1e6;
        }
        let usage = &mut self.usage.devices[lane];
        usage.runs += 1;
        usage.alone = usage.alone + crate::drive::modelled::total(&ran.segments);
        let mut run = Running {
            at: 0,
            left: 0.0,
            began: now,
            rate: 1.0,
            tick: 0,
            played: Vec::with_capacity(ran.segments.len()),
            ran,
        };
        run.enter(0, now);
        self.lanes[lane] = Some(run);
    }

    /// Time passes.
    fn settle(&mut self, now: Nanos) {
        let nanos = now.0 - self.settled.0;
        self.settled = now;
        if nanos == 0 {
            return;
        }
        let computes = |run: &Option<Running>| {
            run.as_ref().is_some_and(|run| run.rate > 0.0 && run.did() != Some(Did::Overhead))
        };
        let computing = self.lanes.iter().filter(|lane| computes(lane)).count();
        self.usage.any.0 += if computing > 0 { nanos } else { 0 };
        self.usage.several.0 += if computing > 1 { nanos } else { 0 };
        for at in &self.order {
            let (lane, usage) = (&mut self.lanes[*at], &mut self.usage.devices[*at]);
            let computes = computes(lane);
            let Some(run) = lane else { continue };
            if computes {
                usage.busy.0 += nanos;
                usage.co_run.0 += if computing > 1 { nanos } else { 0 };
                self.usage.bytes += run.demand() * run.rate * nanos as f64;
            } else if run.rate > 0.0 {
                usage.waiting.0 += nanos;
            }
            run.left -= run.rate * nanos as f64;
        }
    }

    /// Shares the bandwidth again. Returns what will happen and when, of what has changed.
    ///
    /// If all together ask for more than there is, those whose time is that of their bytes slow
    /// down alike, to what the others leave (device model, 3.3), but never below a hundredth.
    pub(super) fn share(&mut self, now: Nanos) -> Vec<(Nanos, Due)> {
        let mut factor = 1.0f64;
        if let Some(cap) = self.around.memory {
            let lanes = || self.order.iter().filter_map(|lane| self.lanes[*lane].as_ref());
            let runs = || lanes().filter(|run| run.rate > 0.0);
            let total: f64 = runs().map(Running::demand).sum();
            let bound: f64 = runs().filter(|run| run.is_bound()).map(Running::demand).sum();
            if total > cap && bound > 0.0 {
                factor = ((cap - (total - bound)) / bound).clamp(0.01, 1.0);
            }
        }
        let mut due = Vec::new();
        for lane in self.order.iter().copied() {
            let Some(run) = self.lanes[lane].as_mut().filter(|run| run.rate > 0.0) else {
                continue;
            };
            let rate = if run.is_bound() { factor } else { 1.0 };
            if run.tick > 0 && rate == run.rate {
                continue;
            }
            run.rate = rate;
            self.next_tick += 1;
            run.tick = self.next_tick;
            let nanos = (run.left / rate).max(0.0).ceil() as u64;
            due.push((Nanos(now.0 + nanos), Due::Tick(lane, run.tick)));
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
        run.leave(now);
        if run.at < run.ran.segments.len() {
            return None;
        }
        let run = self.lanes[lane].take()?;
        Some(Ran { segments: run.played, ..run.ran })
    }

    /// A frame is due. Returns when the next one is.
    pub(super) fn frame(&mut self, now: Nanos) -> Option<Nanos> {
        let renderer = self.around.renderer?;
        if self.drawing == Drawing::Idle {
            self.drawing = Drawing::Due;
        }
        Some(now + renderer.period)
    }

    /// Draws the frame that is due, if no kernel runs. Returns when it is finished.
    pub(super) fn draw(&mut self, now: Nanos) -> Option<Nanos> {
        let renderer = self.around.renderer.filter(|_| self.drawing == Drawing::Due)?;
        self.settle(now);
        if let Some(run) = &mut self.lanes[renderer.device.0] {
            if !run.is_between() {
                return None;
            }
            (run.rate, run.tick) = (0.0, 0);
        }
        self.drawing = Drawing::Draws;
        Some(now + renderer.time)
    }

    /// A frame is finished.
    pub(super) fn drawn(&mut self, now: Nanos) {
        self.settle(now);
        self.drawing = Drawing::Idle;
        self.usage.frames += 1;
        let Some(renderer) = self.around.renderer else { return };
        if let Some(run) = &mut self.lanes[renderer.device.0] {
            run.played.push(Segment::plain(Did::Frame, Duration::from_nanos(now.0 - run.began.0)));
            (run.rate, run.began) = (1.0, now);
        }
    }

    /// A run that has just started waits for the frame that is drawn.
    pub(super) fn hold_for_frame(&mut self, lane: usize) {
        let draws = self.drawing == Drawing::Draws;
        let here = self.around.renderer.is_some_and(|renderer| renderer.device.0 == lane);
        if let (true, Some(run)) = (draws && here, &mut self.lanes[lane]) {
            run.rate = 0.0;
        }
    }
}

impl Running {
    fn did(&self) -> Option<Did> {
        self.ran.segments.get(self.at).map(|segment| segment.did)
    }

    /// Bytes per nanosecond that the present segment could use.
    fn demand(&self) -> f64 {
        let Some(segment) = self.ran.segments.get(self.at) else { return 0.0 };
        segment.load.bytes / (segment.time.as_nanos() as f64).max(1.0)
    }

    fn is_bound(&self) -> bool {
        self.ran.segments.get(self.at).is_some_and(|segment| segment.load.memory_bound)
    }

    /// Whether it has just begun a kernel.
    fn is_between(&self) -> bool {
        let Some(segment) = self.ran.segments.get(self.at) else { return true };
        !segment.load.joins && self.left >= segment.time.as_nanos() as f64
    }

    /// Begins the first segment from that one on that takes any time.
    fn enter(&mut self, at: usize, now: Nanos) {
        let segments = &self.ran.segments;
        let takes_time = |segment: &Segment| !segment.time.is_zero();
        self.at =
            segments[at..].iter().position(takes_time).map_or(segments.len(), |skip| at + skip);
        self.began = now;
        self.left = segments.get(self.at).map_or(0.0, |s| s.time.as_nanos() as f64);
        self.tick = 0;
    }

    /// Ends the present segment.
    fn leave(&mut self, now: Nanos) {
        if let Some(segment) = self.ran.segments.get(self.at) {
            let time = Duration::from_nanos(now.0 - self.began.0);
            self.played.push(Segment { time, ..*segment });
        }
        self.enter((self.at + 1).min(self.ran.segments.len()), now);
    }
}
