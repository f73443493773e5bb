//! Measures T_sync and the copy rate between devices.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lapwing_kernels::device::{Batch, Tensor, TensorSet};
use lapwing_kernels::merge::Merge;
use lapwing_kernels::part::{Part, Share};
use lapwing_traces::event::WaitMode;
use lapwing_traces::{Clock, Nanos};

use super::{MeasureError, MeasureParts};
use crate::drive::mailbox::Mailbox;
use crate::drive::wait::{Cores, WaitKey, Waiter};
use lapwing_plan::profile::Spread;

/// Timed synchronisations.
const HOPS: usize = 200;
/// Pause between them, so that the receiver waits as it does for a stage.
const GAP: Duration = Duration::from_micros(500);
/// Timed merges.
const MERGES: usize = 9;

/// T_sync: from a send until another thread handles the message, through a real mailbox, with the
/// wait mode of workers in an engine of several devices.
#[expect(clippy::disallowed_methods, reason = "drive owns threads and waits")]
pub(super) fn time(clock: &Arc<dyn Clock>) -> Result<Spread, MeasureError> {
    let (mailbox, inbox) = Mailbox::<Nanos>::new("sync", HOPS);
    let receiver_clock = Arc::clone(clock);
    let receiver = thread::Builder::new().name("lapwing-sync".to_owned()).spawn(move || {
        let clock = receiver_clock;
        let mode = WaitMode::SleepThenSpin;
        let mut waiter = Waiter::new(mode, Arc::clone(&clock), Cores::of_machine());
        let mut times = Vec::with_capacity(HOPS);
        while let Ok((sent, _)) = inbox.recv(&mut waiter, WaitKey::default()) {
            times.push(Duration::from_nanos(clock.now().0.saturating_sub(sent.0)));
        }
        times
    });
    let receiver = receiver.map_err(|source| MeasureError::Thread { source })?;
    for _ in 0..HOPS {
        thread::sleep(GAP);
        mailbox.nudge(clock.now());
    }
    drop(mailbox);
    let times = receiver.join().unwrap_or_default();
    // The first waits are not predicted yet.
    let settled = times.get(HOPS / 4..).unwrap_or_default();
    let none = Spread { median_ns: 0, min_ns: 0, max_ns: 0, runs: 0 };
    Ok(Spread::of(settled).unwrap_or(none))
}

/// Bytes read and written per second when two halves of the widest value of a chunk are merged.
pub(super) fn copy_rate(parts: &MeasureParts<'_>) -> f64 {
    let MeasureParts { graph, slots, clock, chunk_rows, .. } = parts;
    let outputs = graph.nodes().iter().map(|node| node.output);
    let all = outputs.filter(|v| graph.value(*v).rows != lapwing_kernels::graph::RowSet::Selected);
    let Some(id) = all.max_by_key(|value| graph.value(*value).width) else { return 1e9 };
    let mut batch = Batch::default();
    batch.push(&vec![0; *chunk_rows], 0, Vec::new(), 0..0);
    let width = graph.value(id).width;
    let halves = [(0, 1), (1, 2)]
        .map(|(from, to)| Part { features: Share { from, to, of: 2 }, ..Part::WHOLE });
    let mut rates: Vec<f64> = (0..MERGES)
        .filter_map(|_| {
            let tensors = halves.iter().map(|part| {
                let width = part.features.of_width(width).len();
                let mut data = slots.take(width * chunk_rows);
                data.fill(1.0);
                let mut set = TensorSet::default();
                set.put(id, Tensor::new(width, data));
                (part, set)
            });
            let tensors = tensors.collect();
            let read = &TensorSet::default();
            let merge = Merge { graph, batch: &batch, writes: &[id], read, slots };
            let begin = clock.now();
            let (_, bytes) = merge.run(tensors).ok()?;
            let time = (clock.now().0 - begin.0).max(1);
            Some(bytes as f64 / time as f64 * 1e9)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(1e9)
}
