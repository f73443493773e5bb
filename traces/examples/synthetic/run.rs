//! A synthetic pipelined run: requests are split into chunks, which pass through CPU, NPU or GPU,
//! and the CPU again. The seed determines everything.

mod stages;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU64;

use lapwing_traces::clock::Nanos;
use lapwing_traces::event::{
    Activity, DraftRole, Event, EventKind, LaneId, LaneKind, Limited, MessageId, Milestone, NameId,
    Sending, SpanId, SpanInfo, StallCause, Tags,
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

impl Hop {
    /// The lane that runs its stage.
    fn lane(&self) -> u32 {
        match self.stage {
            1 if self.rows > 1 => NPU,
            1 => GPU,
            _ => CPU,
        }
    }
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
        let message = self.send(at, CLIENT, "submit", span);
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
            let sending = Sending { stall, ..self.sending("chunk", span) };
            self.record(end, SCHEDULER, EventKind::Sent(sending));
            hop.message = Some(sending.message);
            hop.ready = end;
            self.park(hop);
            let (depth, waiting) = (self.name("queue depth"), self.waiting.len() as i64);
            self.record(end, SCHEDULER, EventKind::Counter(depth, waiting));
        }
    }

    /// A message of a span.
    fn sending(&mut self, name: &str, span: SpanId) -> Sending {
        let (message, name) = (MessageId(self.id()), self.name(name));
        Sending { message, span: Some(span), name, bytes: 0, stall: None }
    }

    fn send(&mut self, at: u64, lane: u32, name: &str, span: SpanId) -> MessageId {
        let sending = self.sending(name, span);
        self.record(at, lane, EventKind::Sent(sending));
        sending.message
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
}
