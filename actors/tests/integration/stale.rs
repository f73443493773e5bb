//! Stale chunks: after a roll-back every actor drops the chunks of earlier epochs, gives the sampling
//! state back, and leaves the sequence alone. Late devices in real time.

use lapwing_actors::decide::{Decision, decide};
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::message::{
    Delivery, FinishReason, Outcome, Progress, SchedulerMessage, Shutdown, StreamEvent, Submit,
    Traced,
};
use lapwing_actors::policy::{ClientId, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::scheduler::{Scheduler, SchedulerEffect};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_actors::worker::{Worker, WorkerEffect};
use lapwing_kernels::device::{ModelId, SlotPool, Tensor, TensorSet};
use lapwing_plan::{DeviceId, StageWork};
use lapwing_traces::Nanos;

use crate::oracle::{VOCAB, foretell};
use crate::support::{Parts, Setup, generate, live, prompt, recorder, request};

/// The deliveries of a prompt of `rows` rows, in chunks of four.
fn deliveries(rows: usize, devices: usize) -> (Vec<Traced<Delivery>>, Parts) {
    let mut setup = Setup { chunk_rows: 4, devices, ..Setup::default() };
    setup.config.permits = 8;
    let mut parts = setup.parts();
    let (sink, receiver) = ChannelSink::new(100);
    // The reading end is leaked, so that the request does not count as cancelled.
    std::mem::forget(receiver);
    let ids = prompt(1, rows);
    let submit = Submit {
        model: ModelId::default(),
        task: generate(&ids, 10),
        ids,
        client: ClientId::anonymous(),
        urgency: Urgency::default(),
        prefix: PrefixUse::default(),
        sink,
        admission: AdmissionLimit::new(1).try_take().expect("a permit"),
        trace: tracing::Span::none(),
    };
    let sent = send(&mut parts.scheduler, SchedulerMessage::Submit(Box::new(submit)));
    (sent, parts)
}

fn send(scheduler: &mut Scheduler, message: SchedulerMessage) -> Vec<Traced<Delivery>> {
    let effects = scheduler.on(Traced::untraced(message), Nanos(0)).into_iter();
    let sent = effects.filter_map(|effect| match effect {
        SchedulerEffect::Send(_, delivery, _) => Some(delivery),
        _ => None,
    });
    sent.collect()
}

fn roll_back(delivery: &Traced<Delivery>) {
    drop(delivery.chunk().sequences[0].progress.roll_back(0));
}

/// The only report among effects, and nothing else but nudges.
fn report(effects: Vec<WorkerEffect>) -> Traced<Progress> {
    let mut reports = effects.into_iter().filter_map(|effect| match effect {
        WorkerEffect::Report(progress) => Some(progress),
        WorkerEffect::Nudge(_) => None,
        other => panic!("a stale chunk causes {other:?}"),
    });
    let report = reports.next().expect("a report");
    assert!(reports.next().is_none(), "one report");
    report
}

fn assert_stale(progress: &Progress, carries_state: bool) {
    match &progress.sequences[0].outcome {
        Outcome::Stale(generate) => assert_eq!(generate.is_some(), carries_state),
        other => panic!("{other:?} of a stale chunk"),
    }
    assert_eq!(progress.sequences[0].epoch, 0, "the epoch in which it was cut");
}

fn submitted(effects: Vec<WorkerEffect>) -> Traced<Delivery> {
    let submit = effects.into_iter().find_map(|effect| match effect {
        WorkerEffect::Submit(delivery) => Some(delivery),
        _ => None,
    });
    submit.expect("a run")
}

#[test]
fn a_worker_drops_a_stale_chunk_before_it_runs() {
    let (sent, _parts) = deliveries(8, 1);
    let mut worker = Worker::new(DeviceId(0), "cpu".to_owned(), 1);
    // The second chunk waits for the first, which never comes.
    let second = sent.into_iter().nth(1).expect("two chunks");
    let progress = std::sync::Arc::clone(&second.chunk().sequences[0].progress);
    assert!(worker.on_delivery(second).is_empty(), "it is too early");
    let (row, nudged) = progress.roll_back(0);
    assert_eq!((row, nudged), (0, vec![DeviceId(0)]), "the worker is nudged to drop it");
    assert_stale(&report(worker.on_nudge()), true);
}

#[test]
fn a_worker_drops_a_stale_chunk_after_it_ran_even_if_the_run_failed() {
    for fails in [false, true] {
        let (sent, _parts) = deliveries(4, 2);
        let mut worker = Worker::new(DeviceId(0), "cpu".to_owned(), 1);
        let run = submitted(worker.on_delivery(sent.into_iter().next().expect("a chunk")));
        roll_back(&run);
        let result = match fails {
            false => Ok(TensorSet::default()),
            true => Err(lapwing_kernels::device::DeviceError::Failed {
                device: "cpu".to_owned(),
                reason: "planted".to_owned(),
            }),
        };
        assert_stale(&report(worker.on_done(run, result)), true);
        assert_eq!(worker.in_flight(), 0);
    }
}

#[test]
fn no_token_is_chosen_from_a_stale_chunk() {
    let (sent, parts) = deliveries(4, 1);
    let mut worker = Worker::new(DeviceId(0), "cpu".to_owned(), 1);
    let run = submitted(worker.on_delivery(sent.into_iter().next().expect("a chunk")));
    let mut outputs = TensorSet::default();
    outputs.put(parts.graph.output(), Tensor::new(VOCAB, vec![0.0; VOCAB]));
    let mut effects = worker.on_done(run, Ok(outputs)).into_iter();
    let Some(WorkerEffect::Decide(mut chunk)) = effects.next() else { panic!("no choice") };
    assert!(matches!(chunk.stage().work, StageWork::Decide { .. }));
    drop(chunk.sequences[0].progress.roll_back(0));
    let decided = decide(&mut chunk, &SlotPool::default()).expect("logits");
    assert!(matches!(decided[..], [Decision::Void]));
    assert_stale(&report(worker.on_decided(chunk, Ok(decided))), true);
}

#[test]
fn the_scheduler_sends_rolled_back_rows_when_the_last_stale_chunk_has_ended() {
    let (sent, mut parts) = deliveries(8, 1);
    let mut worker = Worker::new(DeviceId(0), "cpu".to_owned(), 1);
    let sequence = sent[0].chunk().sequences[0].sequence;
    let message =
        SchedulerMessage::RollBack(lapwing_actors::message::RollBack { sequence, row: 3 });
    assert!(send(&mut parts.scheduler, message).is_empty(), "stale chunks are in flight");
    let mut again = Vec::new();
    for (number, delivery) in sent.into_iter().enumerate() {
        let progress = report(worker.on_delivery(delivery)).message;
        again = send(&mut parts.scheduler, SchedulerMessage::Progress(progress));
        assert_eq!(again.is_empty(), number == 0, "rows of the new epoch before their time");
    }
    let rows: Vec<_> = again.iter().map(|d| d.chunk().batch().spans[0].start).collect();
    // Row 3 was still on its way, and so were those before it.
    assert_eq!(rows, [0, 4]);
    assert!(again.iter().all(|d| d.chunk().sequences[0].epoch == 1));
}

#[test]
fn late_devices_in_real_time_give_the_same_tokens_and_their_memory_back() {
    let mut setup = Setup { devices: 3, late: vec![0, 3, 1], ..Setup::default() };
    setup.config.permits = 4;
    let (engine, pool) = live(&setup, 8, &recorder());
    let streams: Vec<_> = (0..6)
        .map(|number| {
            let ids = prompt(number, 3 + 9 * number as usize);
            let admission = engine.admit().expect("room");
            (engine.submit(admission, request(&ids, 12)).expect("an engine"), ids)
        })
        .collect();
    for (mut events, ids) in streams {
        let (want, why) = foretell(&ids, 12);
        let mut tokens = Vec::new();
        let end = loop {
            match events.next_blocking() {
                StreamEvent::Token(token) => tokens.push(token.id),
                StreamEvent::Finished(finished) => break finished.reason,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((tokens, end), (want, why));
        assert!(matches!(end, FinishReason::Stop | FinishReason::Length));
    }
    engine.shutdown(Shutdown::Drain);
    assert_eq!(pool.free_pages(), pool.capacity(), "pages leaked");
}
