//! The pool of buffers that hold the values between ops.

use lapwing_kernels::device::SlotPool;
use lapwing_kernels::graph::{Graph, RowSet, ValueId};

use crate::config::Chosen;
use crate::devices::InPlace;

/// One pool for all devices, large enough for the chunks in flight (the reserved slots of
/// HeteroLLM's fast synchronisation): a slot for each value that is live at a time, and one for
/// the value computed from it. The slots hold the values of any of the graphs. They lie
/// in memory that a device uses in place, if there is any.
pub(super) fn slot_pool(graphs: &[&Graph], chosen: &Chosen, in_place: &InPlace) -> SlotPool {
    let (slots, values) = sizes(graphs, chosen);
    match in_place.source() {
        Some(source) => SlotPool::mapped(slots, values, source),
        None => SlotPool::new(slots, values),
    }
}

/// Bytes of such a pool.
pub(super) fn slot_bytes(graphs: &[&Graph], chosen: &Chosen) -> u64 {
    let (slots, values) = sizes(graphs, chosen);
    slots as u64 * values as u64 * size_of::<f32>() as u64
}

/// The number of slots, and the values of each.
fn sizes(graphs: &[&Graph], chosen: &Chosen) -> (usize, usize) {
    let alive = |graph: &&Graph| {
        let nodes = graph.nodes().len();
        (1..nodes).map(|end| graph.live_out(0..end).len()).max().unwrap_or(1)
    };
    let alive = graphs.iter().map(alive).max().unwrap_or(1);
    let most = |graph: &&Graph| {
        let values = (0..graph.value_count()).map(|id| graph.value(ValueId(id)));
        let floats = values.map(|value| match value.rows {
            RowSet::All | RowSet::Passed => value.width * chosen.chunk_rows,
            RowSet::Selected => value.width * chosen.sequences_max,
        });
        floats.max().unwrap_or(0)
    };
    let most = graphs.iter().map(most).max().unwrap_or(0);
    (chosen.permits * (alive + chosen.devices.len() + 1), most)
}
