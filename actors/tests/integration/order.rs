//! A chunk that arrives early waits; every stage runs each chunk once and in order.

use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::message::{Delivery, SchedulerMessage, Submit, Traced};
use lapwing_actors::policy::{ClientId, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::scheduler::{Scheduler, SchedulerEffect};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_actors::worker::{Worker, WorkerEffect};
use lapwing_kernels::device::{ModelId, TensorSet};
use lapwing_plan::DeviceId;
use lapwing_traces::Nanos;

use crate::support::{Parts, Setup, generate, prompt};

fn chunks(
    scheduler: &mut Scheduler,
    prompt: &[u32],
    admission: &AdmissionLimit,
) -> Vec<Traced<Delivery>> {
    // The reading end is leaked, so that the request does not count as cancelled.
    let (sink, receiver) = ChannelSink::new(100);
    std::mem::forget(receiver);
    let submit = Submit {
        ids: prompt.to_vec(),
        task: generate(prompt, 10),
        client: ClientId::anonymous(),
        urgency: Urgency::default(),
        prefix: PrefixUse::default(),
        sink,
        model: ModelId::default(),
        admission: admission.try_take().expect("a permit"),
        trace: tracing::Span::none(),
    };
    let effects =
        scheduler.on(Traced::untraced(SchedulerMessage::Submit(Box::new(submit))), Nanos(0));
    effects
        .into_iter()
        .filter_map(|effect| match effect {
            SchedulerEffect::Send(_, delivery, _) => Some(delivery),
            _ => None,
        })
        .collect()
}

fn runs(effects: Vec<WorkerEffect>) -> Vec<Traced<Delivery>> {
    effects
        .into_iter()
        .filter_map(|effect| match effect {
            WorkerEffect::Submit(delivery) => Some(delivery),
            _ => None,
        })
        .collect()
}

#[test]
fn chunks_run_in_order_whatever_the_order_of_arrival() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let mut setup = Setup { chunk_rows: 4, devices: 2, ..Setup::default() };
        setup.config.permits = 3;
        let Parts { mut scheduler, .. } = setup.parts();
        let admission = AdmissionLimit::new(1);
        let mut waiting: Vec<_> =
            chunks(&mut scheduler, &prompt(1, 12), &admission).into_iter().map(Some).collect();
        assert_eq!(waiting.len(), 3);
        let mut worker = Worker::new(DeviceId(0), "first stage".to_owned(), 1);
        let mut ready = Vec::new();
        for at in order {
            ready.extend(runs(worker.on_delivery(waiting[at].take().expect("sent once"))));
        }
        let mut started = Vec::new();
        while let Some(delivery) = ready.pop() {
            started.push(delivery.chunk().batch().spans[0].start);
            ready.extend(runs(worker.on_done(delivery, Ok(TensorSet::default()))));
            assert!(ready.len() <= 1, "one stage at a time");
        }
        assert_eq!(started, [0, 4, 8], "arrival {order:?}");
        assert_eq!(worker.waiting(), 0);
    }
}
