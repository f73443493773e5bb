//! Events of the stages of a chunk: ops, waits, messages and sampled tokens.

use lapwing_traces::clock::Nanos;
use lapwing_traces::event::{
    Activity, DraftRole, EventKind, Milestone, RowOutcome, SpanId, SpanInfo, WaitInfo, WaitMode,
};

use super::{CPU, Hop, LAYERS, NPU, Run, SCHEDULER, role_of};

/// An op of a stage.
struct Op<'a> {
    name: &'a str,
    layer: Option<u16>,
    /// The span of the stage.
    parent: SpanId,
}

impl Run {
    /// Runs one stage: 0 embeds on the CPU, 1 computes the layers, 2 computes and samples logits.
    pub(super) fn stage(&mut self, hop: Hop) {
        let lane = hop.lane();
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
        let op = |name, layer| Op { name, layer, parent: span };
        match hop.stage {
            0 => at = self.op(at, &hop, op("embed", None)),
            1 => {
                for layer in 0..LAYERS {
                    for name in ["norm", "qkv matmul", "rope", "attention", "mlp matmul"] {
                        at = self.op(at, &hop, op(name, Some(layer)));
                    }
                }
            }
            _ => {
                at = self.op(at, &hop, op("logits matmul", None));
                at = self.op(at, &hop, op("sample", None));
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

    /// Runs an op of a stage; the time of the next one.
    fn op(&mut self, at: u64, hop: &Hop, op: Op<'_>) -> u64 {
        let lane = hop.lane();
        let rows = u64::from(hop.rows);
        let (activity, base, bytes, flops) = match op.name {
            "norm" | "rope" => (Activity::Compute, 260, rows * 4_608, rows * 2_304),
            "attention" => (Activity::Compute, 1_400, rows * 98_304, rows * 589_824),
            "embed" => (Activity::Copy, 900, rows * 2_304, 0),
            "sample" => (Activity::Sample, 2_300, 196_608, 49_152),
            "logits matmul" => (Activity::Compute, 5_200, 28_311_552, 56_623_104),
            _ => (Activity::Compute, 2_600, 3_538_944, rows * 7_077_888),
        };
        let factor = if lane == NPU { 2 } else { 1 };
        let end = at + self.random.about(base * factor);
        let (span, name) = (SpanId(self.id()), self.name(op.name));
        let mut tags = self.tags(hop, Some(hop.stage));
        (tags.layer, tags.bytes, tags.flops) = (op.layer, bytes, flops);
        let info = SpanInfo { name, activity, parent: Some(op.parent), tags };
        self.record(end, lane, EventKind::Ran(span, info, Nanos(at)));
        end + 40
    }

    fn forward(&mut self, mut hop: Hop, lane: u32, span: SpanId, end: u64) {
        if hop.stage < 2 {
            hop.message = Some(self.send(end, lane, "chunk", span));
            (hop.stage, hop.ready) = (hop.stage + 1, end);
            return self.park(hop);
        }
        self.in_flight -= 1;
        let message = self.send(end, CPU, "progress", span);
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
            let message = self.send(end, CPU, "answer", span);
            self.client("read answer", 9_000, Some((message, end)));
            return;
        }
        self.enter(Hop { rows: 1, stage: 0, message: None, ready, ..hop });
    }
}
