//! A synthetic pipelined run: requests are split into chunks, which pass through CPU, NPU or GPU,
//! and the CPU again. The seed determines everything.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU64;

use lapwing_traces::clock::Nanos;
use lapwing_traces::event::{
    Activity, DraftRole, Event, EventKind, LaneId, LaneKind, Limited, MessageId, Milestone, NameId,
    RowOutcome, Sending, SpanId, SpanInfo, StallCause, Tags, WaitInfo, WaitMode,
};
use lapwing_traces::recording::{LaneInfo, Recording};

const SCHEDULER: u32 = 0;
const CPU: u32 = 1;
const GPU: u32 = 2;
const NPU: u32 = 3;
const CLIENT: u32 = 4;

const LAYERS: u16 = 6;
const PERMITS: usize = 4;
/// Target of some requests for the time between two tokens, in ns.
const GAP_TARGET: u64 = 300_000;
const CHUNK_ROWS: u32 = 64;

/// Pseudo-random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// `nanos` varied by up to an eighth.
    fn about(&mut self, nanos: u64) -> u64 {
        nanos - nanos / 8 + self.below(nanos / 4)
    }
}

/// Some requests stand for passes of speculative decoding.
fn role_of(request: usize) -> Option<DraftRole> {
    match request % 4 {
        1 => Some(DraftRole::Draft),
        2 => Some(DraftRole::Verify),
        _ => None,
    }
}

/// A request in progress.
struct Request {
    prompt_left: u32,
    tokens_left: u32,
    epoch: u32,
}

/// A chunk on its way to a stage.
#[derive(Clone, Copy)]
struct Hop {
    request: usize,
    chunk: u64,
    stage: u16,
    rows: u32,
    last: bool,
    message: Option<MessageId>,
    ready: u64,
}

struct Run {
    random: Random,
    recording: Recording,
    next_id: u64,
    free: [u64; 5],
    requests: Vec<Request>,
    waiting: VecDeque<Hop>,
    hops: BinaryHeap<(Reverse<u64>, Reverse<u64>)>,
    parked: Vec<Option<Hop>>,
    in_flight: usize,
    chunks: u64,
}

/// A recording of at least `events` events.
pub(crate) fn recording(events: usize, seed: u64) -> Recording {
    let lane = |name: &str, kind| LaneInfo { name: name.to_owned(), kind };
    let mut run = Run {
        random: Random(seed),
        recording: Recording {
            lanes: vec![
                lane("scheduler", LaneKind::Actor),
                lane("cpu", LaneKind::Device),
                lane("gpu", LaneKind::Device),
                lane("npu", LaneKind::Device),
                lane("client", LaneKind::Thread),
            ],
            ..Recording::default()
        },
        next_id: 0,
        free: [0; 5],
        requests: Vec::new(),
        waiting: VecDeque::new(),
        hops: BinaryHeap::new(),
        parked: Vec::new(),
        in_flight: 0,
        chunks: 0,
    };
    for (key, value) in [("clock", "virtual"), ("model", "made up"), ("strategy", "pipe")] {
        run.recording.meta.insert(key.to_owned(), value.to_owned());
    }
    run.recording.meta.insert("seed".to_owned(), seed.to_string());
    while run.recording.events.len() < events {
        for _ in 0..3 {
            run.ask();
        }
        run.drain();
    }
    run.recording
}

impl Run {
    fn id(&mut self) -> NonZeroU64 {
        self.next_id += 1;
        NonZeroU64::MIN.saturating_add(self.next_id)
    }

    fn name(&mut self, text: &str) -> NameId {
        let names = &mut self.recording.names;
        let at = names.iter().position(|name| name == text).unwrap_or_else(|| {
            names.push(text.to_owned());
            names.len() - 1
        });
        NameId(at as u32)
    }

    fn record(&mut self, at: u64, lane: u32, kind: EventKind) {
        self.recording.events.push(Event { at: Nanos(at), lane: LaneId(lane), kind });
    }

    /// Work of the client: a span directly after its previous one.
    fn client(
        &mut self,
        text: &str,
        nanos: u64,
        answer: Option<(MessageId, u64)>,
    ) -> (SpanId, u64) {
        let taken = answer.map_or(0, |(_, sent)| sent + 700);
        let begin = taken.max(self.free[CLIENT as usize]);
        let end = begin + self.random.about(nanos);
        self.free[CLIENT as usize] = end;
        let (span, name) = (SpanId(self.id()), self.name(text));
        let info =
            SpanInfo { name, activity: Activity::Other, parent: None, tags: Tags::default() };
        if let Some((message, _)) = answer {
            self.record(begin, CLIENT, EventKind::Received(message, Some(span)));
        }
        self.record(end, CLIENT, EventKind::Ran(span, info, Nanos(begin)));
        (span, end)
    }

    /// The client has read the answer and sends the next request.
    fn ask(&mut self) {
        let (span, at) = self.client("write prompt", 40_000, None);
        let message = self.send((at, CLIENT), "submit", Some(span), None);
        self.submit(at, message);
    }

    fn submit(&mut self, at: u64, message: MessageId) {
        let number = self.requests.len();
        let (prompt, tokens) =
            (64 + self.random.below(192) as u32, 6 + self.random.below(10) as u32);
        self.requests.push(Request { prompt_left: prompt, tokens_left: tokens, epoch: 0 });
        let milestone = |milestone, value| EventKind::Request(number as u64, milestone, value);
        self.record(at, SCHEDULER, milestone(Milestone::Submitted, u64::from(prompt)));
        if number.is_multiple_of(3) {
            self.record(at, SCHEDULER, milestone(Milestone::TokenGap, GAP_TARGET));
        }
        let admitted = at + 2_000 + self.random.below(9_000);
        self.record(admitted, SCHEDULER, milestone(Milestone::Admitted, 0));
        // The first chunk depends on the client's message.
        let mut message = Some(message);
        let mut ready = admitted;
        while self.requests[number].prompt_left > 0 {
            let rows = self.requests[number].prompt_left.min(CHUNK_ROWS);
            self.requests[number].prompt_left -= rows;
            let last = self.requests[number].prompt_left == 0;
            let message = message.take();
            self.enter(Hop { request: number, chunk: 0, stage: 0, rows, last, message, ready });
            ready += 1_500;
        }
    }

    /// A chunk requests a permit.
    fn enter(&mut self, mut hop: Hop) {
        hop.chunk = self.chunks;
        self.chunks += 1;
        let depth = self.name("queue depth");
        self.waiting.push_back(hop);
        let waiting = self.waiting.len() as i64;
        self.record(hop.ready, SCHEDULER, EventKind::Counter(depth, waiting));
        self.admit(hop.ready);
    }

    fn admit(&mut self, now: u64) {
        while self.in_flight < PERMITS
            && let Some(mut hop) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            let begin = now.max(hop.ready).max(self.free[SCHEDULER as usize]);
            let end = begin + self.random.about(1_600);
            self.free[SCHEDULER as usize] = end + 100;
            let (span, name) = (SpanId(self.id()), self.name("pick chunk"));
            let tags = self.tags(&hop, None);
            let info = SpanInfo { name, activity: Activity::Schedule, parent: None, tags };
            self.record(end, SCHEDULER, EventKind::Ran(span, info, Nanos(begin)));
            if let Some(message) = hop.message {
                self.record(begin, SCHEDULER, EventKind::Received(message, Some(span)));
            }
            let stalled = begin > hop.ready + 4_000;
            let stall = stalled.then_some((StallCause::BackPressure, Nanos(hop.ready)));
            if hop.rows > 1 && hop.request > 0 {
                let stream = (hop.request % 2 == 1).then_some(hop.request as u64 - 1);
                let slack = stream.map_or(0, |_| 48_000);
                let limited = Limited { chunk: hop.chunk, stream, slack };
                self.record(end, SCHEDULER, EventKind::Limited(limited));
            }
            hop.message = Some(self.send((end, SCHEDULER), "chunk", Some(span), stall));
            hop.ready = end;
            self.park(hop);
            let (depth, waiting) = (self.name("queue depth"), self.waiting.len() as i64);
            self.record(end, SCHEDULER, EventKind::Counter(depth, waiting));
        }
    }

    fn send(
        &mut self,
        (at, lane): (u64, u32),
        name: &str,
        span: Option<SpanId>,
        stall: Option<(StallCause, Nanos)>,
    ) -> MessageId {
        let (message, name) = (MessageId(self.id()), self.name(name));
        self.record(at, lane, EventKind::Sent(Sending { message, span, name, bytes: 0, stall }));
        message
    }

    fn park(&mut self, hop: Hop) {
        self.hops.push((Reverse(hop.ready), Reverse(self.parked.len() as u64)));
        self.parked.push(Some(hop));
    }

    fn drain(&mut self) {
        while let Some((_, Reverse(at))) = self.hops.pop() {
            if let Some(hop) = self.parked[at as usize].take() {
                self.stage(hop);
            }
        }
        self.parked.clear();
    }

    fn tags(&self, hop: &Hop, stage: Option<u16>) -> Tags {
        Tags {
            chunk: Some(hop.chunk),
            request: Some(hop.request as u64),
            stage,
            role: role_of(hop.request),
            rows: hop.rows,
            epoch: self.requests[hop.request].epoch,
            ..Tags::default()
        }
    }

    /// Runs one stage: 0 embeds on the CPU, 1 computes the layers, 2 computes and samples logits.
    fn stage(&mut self, hop: Hop) {
        let lane = match hop.stage {
            1 if hop.rows > 1 => NPU,
            1 => GPU,
            _ => CPU,
        };
        let received = hop.ready + 300 + self.random.below(900);
        let begin = received.max(self.free[lane as usize]);
        let span = SpanId(self.id());
        if received > self.free[lane as usize] + 20_000 {
            self.record(received, lane, EventKind::Woke(Nanos(self.free[lane as usize])));
        }
        self.record(hop.ready, lane, EventKind::Queued(span));
        self.record(begin.saturating_sub(150), lane, EventKind::Submitted(span));
        if let Some(message) = hop.message {
            self.record(begin, lane, EventKind::Received(message, Some(span)));
        }
        let mut at = begin + self.random.about(400);
        let parent = Some(span);
        match hop.stage {
            0 => at = self.op(at, lane, &hop, ("embed", None, parent)),
            1 => {
                for layer in 0..LAYERS {
                    for op in ["norm", "qkv matmul", "rope", "attention", "mlp matmul"] {
                        at = self.op(at, lane, &hop, (op, Some(layer), parent));
                    }
                }
            }
            _ => {
                at = self.op(at, lane, &hop, ("logits matmul", None, parent));
                at = self.op(at, lane, &hop, ("sample", None, parent));
            }
        }
        let end = at + 200;
        self.free[lane as usize] = end;
        let name = self.name(["embed stage", "layers stage", "head stage"][hop.stage as usize]);
        let activity = if hop.stage == 2 { Activity::Sample } else { Activity::Compute };
        let info =
            SpanInfo { name, activity, parent: None, tags: self.tags(&hop, Some(hop.stage)) };
        self.record(end, lane, EventKind::Ran(span, info, Nanos(begin)));
        if lane != CPU {
            self.upload(begin, lane, &hop);
            self.waited(begin, end, span);
        }
        self.forward(hop, lane, span, end);
    }

    /// Copies the activations of a stage concurrently: a second slot of the lane.
    fn upload(&mut self, begin: u64, lane: u32, hop: &Hop) {
        if !hop.chunk.is_multiple_of(5) {
            return;
        }
        let (span, name) = (SpanId(self.id()), self.name("upload activations"));
        let mut tags = self.tags(hop, Some(1));
        tags.bytes = u64::from(hop.rows) * 4096;
        let info = SpanInfo { name, activity: Activity::Copy, parent: None, tags };
        let end = begin + self.random.about(9_000);
        self.record(end, lane, EventKind::Ran(span, info, Nanos(begin + 500)));
    }

    /// The CPU worker waits for the other processor with a prediction.
    fn waited(&mut self, begin: u64, end: u64, target: SpanId) {
        let since = begin + 200;
        let predicted = self.random.about(end - since);
        let margin = 2_000;
        let slept = predicted.saturating_sub(margin).min(end - since + 1_500);
        let done = end.max(since + slept) + self.random.below(300);
        let name = self.name("device done");
        let mode = WaitMode::SleepThenSpin;
        let (since, spun) = (Nanos(since), done - since - slept);
        let target = Some(target);
        let wait = WaitInfo { name, since, target, mode, predicted, margin, slept, spun };
        self.record(done, CPU, EventKind::Waited(wait));
    }

    fn op(
        &mut self,
        at: u64,
        lane: u32,
        hop: &Hop,
        (op, layer, parent): (&str, Option<u16>, Option<SpanId>),
    ) -> u64 {
        let rows = u64::from(hop.rows);
        let (activity, base, bytes, flops) = match op {
            "norm" | "rope" => (Activity::Compute, 260, rows * 4_608, rows * 2_304),
            "attention" => (Activity::Compute, 1_400, rows * 98_304, rows * 589_824),
            "embed" => (Activity::Copy, 900, rows * 2_304, 0),
            "sample" => (Activity::Sample, 2_300, 196_608, 49_152),
            "logits matmul" => (Activity::Compute, 5_200, 28_311_552, 56_623_104),
            _ => (Activity::Compute, 2_600, 3_538_944, rows * 7_077_888),
        };
        let factor = if lane == NPU { 2 } else { 1 };
        let end = at + self.random.about(base * factor);
        let (span, name) = (SpanId(self.id()), self.name(op));
        let mut tags = self.tags(hop, Some(hop.stage));
        (tags.layer, tags.bytes, tags.flops) = (layer, bytes, flops);
        let info = SpanInfo { name, activity, parent, tags };
        self.record(end, lane, EventKind::Ran(span, info, Nanos(at)));
        end + 40
    }

    fn forward(&mut self, mut hop: Hop, lane: u32, span: SpanId, end: u64) {
        if hop.stage < 2 {
            hop.message = Some(self.send((end, lane), "chunk", Some(span), None));
            (hop.stage, hop.ready) = (hop.stage + 1, end);
            return self.park(hop);
        }
        self.in_flight -= 1;
        let message = self.send((end, CPU), "progress", Some(span), None);
        let begin = (end + 500).max(self.free[SCHEDULER as usize]);
        let (progress, name) = (SpanId(self.id()), self.name("account progress"));
        let tags = self.tags(&hop, None);
        let info = SpanInfo { name, activity: Activity::Schedule, parent: None, tags };
        self.record(begin, SCHEDULER, EventKind::Received(message, Some(progress)));
        let done = begin + self.random.about(900);
        self.record(done, SCHEDULER, EventKind::Ran(progress, info, Nanos(begin)));
        self.free[SCHEDULER as usize] = done + 50;
        if hop.last {
            self.token(hop, span, end, done);
        }
        self.admit(done);
    }

    fn token(&mut self, hop: Hop, span: SpanId, end: u64, ready: u64) {
        let number = hop.request as u64;
        self.record(end, CPU, EventKind::Request(number, Milestone::Token, 1));
        if let Some(role) = role_of(hop.request) {
            let drafted = u32::from(role == DraftRole::Verify);
            let wasted = u32::from(hop.chunk.is_multiple_of(5));
            let rows = RowOutcome { drafted, accepted: drafted.saturating_sub(wasted), wasted };
            self.record(end, CPU, EventKind::Rows(hop.chunk, rows));
        }
        let request = &mut self.requests[hop.request];
        request.tokens_left -= 1;
        if request.tokens_left == 0 {
            let freed = self.name("KV pages");
            self.record(end, CPU, EventKind::Freed(freed, 1 << 20));
            self.record(end, CPU, EventKind::Request(number, Milestone::Finished, 0));
            let message = self.send((end, CPU), "answer", Some(span), None);
            self.client("read answer", 9_000, Some((message, end)));
            return;
        }
        self.enter(Hop { rows: 1, stage: 0, message: None, ready, ..hop });
    }
}
