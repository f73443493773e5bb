//! Checks that what a device computes with fits in its own memory.

use std::sync::Arc;

use lapwing_kernels::device::{CacheBytes, DeviceInfo, DeviceKind, Room, RoomNeed as Need};
use lapwing_plan::planner::PlannerParts;
use lapwing_plan::strategy::{ChunkShape, GpuLayers, PromptRows, Strategy};
use lapwing_plan::{DeviceId, Phase, PlanError, Route, device_of};

use super::opened::Opened;
use crate::config::{Chosen, StrategyChoice};
use crate::devices::build::{Built, Shared};
use crate::error::Error;
use crate::placement::Explainer;

/// The memory of a device.
#[derive(Clone, Copy, Debug)]
struct Memory<'a> {
    device: &'a str,
    /// Bytes of its own memory, if it has any.
    capacity: Option<u64>,
    /// Bytes of it that the draft model takes.
    draft: u64,
}

/// A device whose memory is too small, and by how much.
#[derive(Debug)]
struct TooSmall {
    device: String,
    capacity: u64,
    need: Need,
    /// Bytes of the draft model on it.
    draft: u64,
    /// Layers that fit, if all need the same.
    fit: u64,
}

impl From<TooSmall> for Error {
    fn from(small: TooSmall) -> Error {
        let TooSmall { device, capacity, need, draft, fit } = small;
        let (beside, or) = match draft {
            0 => (String::new(), ""),
            _ => (
                format!(", beside {draft} bytes of the draft model,"),
                ", run the draft model on another device (--draft-device)",
            ),
        };
        let expected = format!(
            "{} bytes of weights and {} bytes of keys, values and states{beside} within the {capacity} bytes of its \
             memory; run fewer layers on it (about {fit}: --gpu-layers {fit}, with a CPU beside it){or}, \
             or make the context smaller",
            need.weights, need.kv
        );
        Error::config("device", device, &expected)
    }
}

/// The sizes that decide how much memory a device needs.
#[derive(Clone, Debug)]
struct Sizes {
    /// Largest context in tokens.
    context: usize,
    cache: CacheBytes,
}

/// Checks each device that has memory of its own against the routes of a full chunk and of a decode step.
/// Where they do not fit and the settings choose no strategy, replaces the strategy by one that runs as many layers on the GPU
/// as fit, and the others on the CPU; returns a note that says so.
///
/// # Errors
/// With the sizes, and the number of layers that fit, if the routes do not fit and are not to be split, or
/// no CPU is there for the other layers.
pub(super) fn fit(
    shared: Shared<'_>,
    devices: &[Built],
    explainer: &mut Explainer,
) -> Result<Option<String>, Error> {
    let Opened { settings, chosen, .. } = shared.opened;
    // A strategy that the caller has chosen is kept, even if the model does not fit.
    let may_split =
        matches!(settings.strategy, StrategyChoice::Suitable) && settings.places.is_empty();
    let memories = memories(shared, devices);
    fit_parts(&memories, &mut explainer.parts, &sizes(chosen), may_split)
}

/// Whether a strategy fits into the memory of every device.
///
/// # Errors
/// When it has no route.
pub(super) fn fits(
    shared: Shared<'_>,
    devices: &[Built],
    parts: &PlannerParts,
    strategy: Arc<dyn Strategy>,
) -> Result<bool, Error> {
    let parts = PlannerParts { strategy, ..parts.clone() };
    Ok(too_small(&memories(shared, devices), &parts, &sizes(&shared.opened.chosen))?.is_none())
}

/// Bytes of a device's own memory that weights, keys and values may take.
pub(super) fn room(capacity: u64) -> u64 {
    Room::of_capacity(capacity).bytes
}

/// The description of a device with the room in its memory, if it has one of its own: beside a draft model of that many bytes, for the
/// cache of these settings.
pub(super) fn with_room(
    info: DeviceInfo,
    capacity: Option<u64>,
    draft: u64,
    chosen: &Chosen,
) -> DeviceInfo {
    let room = capacity.map(|capacity| {
        let room = Room::of_capacity(capacity).with_cache(&chosen.layout, chosen.kv_size());
        Room { bytes: room.bytes.saturating_sub(draft), ..room }
    });
    DeviceInfo { room, ..info }
}

/// The descriptions of built devices, with the room in their memories.
pub(super) fn infos(shared: Shared<'_>, devices: &[Built]) -> Vec<DeviceInfo> {
    let info = |(number, built): (usize, &Built)| {
        let draft = draft_bytes(shared, number, built);
        with_room(built.info.clone(), built.capacity, draft, &shared.opened.chosen)
    };
    devices.iter().enumerate().map(info).collect()
}

/// As [`fit`], for devices that are not built: each with its own memory, if it has any.
///
/// # Errors
/// As [`fit`].
pub(super) fn fit_capacities(
    capacities: &[Option<u64>],
    parts: &mut PlannerParts,
    chosen: &Chosen,
    may_split: bool,
) -> Result<Option<String>, Error> {
    let names: Vec<String> = parts.devices.iter().map(|info| info.name.to_string()).collect();
    let each = names.iter().zip(capacities);
    let memories = each.map(|(device, capacity)| Memory { device, capacity: *capacity, draft: 0 });
    fit_parts(&memories.collect::<Vec<_>>(), parts, &sizes(chosen), may_split)
}

/// Bytes of weights, and of keys and values, that each device needs for the routes of a full chunk and of a decode step.
///
/// # Errors
/// When the strategy has no route.
pub(super) fn needs(parts: &PlannerParts, chosen: &Chosen) -> Result<Vec<(u64, u64)>, PlanError> {
    let sizes = sizes(chosen);
    let routes = routes(parts, sizes.context)?;
    let each = (0..parts.devices.len()).map(|device| {
        let Need { weights, kv, .. } = need(parts, &routes, DeviceId(device), &sizes.cache);
        (weights, kv)
    });
    Ok(each.collect())
}

/// Bytes that the draft model takes on a device.
fn draft_bytes(shared: Shared<'_>, number: usize, on: &Built) -> u64 {
    shared.draft_on(number).map_or(0, |draft| draft.bytes(on.info.packing))
}

fn sizes(chosen: &Chosen) -> Sizes {
    let cache = CacheBytes::new(&chosen.layout, chosen.kv_size());
    Sizes { context: chosen.context, cache }
}

fn memories<'a>(shared: Shared<'_>, devices: &'a [Built]) -> Vec<Memory<'a>> {
    let memory = |(number, built): (usize, &'a Built)| {
        let Built { info, capacity, .. } = built;
        let draft = draft_bytes(shared, number, built);
        Memory { device: &info.name, capacity: *capacity, draft }
    };
    devices.iter().enumerate().map(memory).collect()
}

fn fit_parts(
    memories: &[Memory<'_>],
    parts: &mut PlannerParts,
    sizes: &Sizes,
    may_split: bool,
) -> Result<Option<String>, Error> {
    let Some(small) = too_small(memories, parts, sizes)? else { return Ok(None) };
    if !may_split || device_of(&parts.devices, DeviceKind::Cpu).is_none() {
        return Err(small.into());
    }
    let layers = parts.graph.nodes().iter().filter_map(|node| node.layer).max();
    let layers = layers.map_or(0, |last| last + 1);
    for on_gpu in (0..layers).rev() {
        parts.strategy = Arc::new(GpuLayers { layers: on_gpu });
        if too_small(memories, parts, sizes)?.is_none() {
            return Ok(Some(format!(
                "the model needs {} bytes of the {} bytes of memory of '{}'{}, so the last {on_gpu} of \
                 {layers} layers run on the GPU, as many as fit, and the others on the CPU; --gpu-layers \
                 or --strategy decides otherwise",
                small.need.weights + small.need.kv,
                small.capacity,
                small.device,
                match small.draft {
                    0 => String::new(),
                    draft => format!(", of which the draft model takes {draft}"),
                },
            )));
        }
    }
    Err(small.into())
}

/// The first device whose memory is too small for its part of the routes.
fn too_small(
    memories: &[Memory<'_>],
    parts: &PlannerParts,
    sizes: &Sizes,
) -> Result<Option<TooSmall>, Error> {
    if memories.iter().all(|memory| memory.capacity.is_none()) {
        return Ok(None);
    }
    let routes = routes(parts, sizes.context)?;
    for (device, memory) in memories.iter().enumerate() {
        let Some(capacity) = memory.capacity else { continue };
        let need = need(parts, &routes, DeviceId(device), &sizes.cache);
        let (draft, room) = (memory.draft, room(capacity));
        if need.weights + need.kv + draft > room {
            let each = (need.weights + need.kv) / need.layers.max(1) as u64;
            let fit = room.saturating_sub(draft).checked_div(each).unwrap_or(0);
            let device = memory.device.to_owned();
            return Ok(Some(TooSmall { device, capacity, need, draft, fit }));
        }
    }
    Ok(None)
}

/// The routes of a full chunk and of a decode step. Those of a strategy that does not place within the memories are taken as they are.
fn routes(parts: &PlannerParts, prompt: usize) -> Result<[Arc<Route>; 2], PlanError> {
    match routes_within(parts, prompt) {
        Err(PlanError::Memory { .. } | PlanError::NotKept { .. }) => {
            let without = |info: &DeviceInfo| DeviceInfo { room: None, ..info.clone() };
            let devices = parts.devices.iter().map(without).collect();
            routes_within(&PlannerParts { devices, ..parts.clone() }, prompt)
        }
        routes => routes,
    }
}

fn routes_within(parts: &PlannerParts, prompt: usize) -> Result<[Arc<Route>; 2], PlanError> {
    let input = parts.input();
    let most = prompt.min(parts.chunk_rows).max(1);
    let rows = parts.strategy.chunk_rows(&input, PromptRows::new(prompt)).clamp(1, most);
    let prefill = ChunkShape { phase: Phase::Prefill, rows, selected: 1, context: 0, prompt };
    let decode =
        ChunkShape { phase: Phase::Decode, rows: 1, selected: 1, context: prompt - 1, prompt: 0 };
    Ok([parts.strategy.route(&input, &prefill)?, parts.strategy.route(&input, &decode)?])
}

/// Weights are counted once, whichever route and part reads them.
fn need(parts: &PlannerParts, routes: &[Arc<Route>], device: DeviceId, cache: &CacheBytes) -> Need {
    let stages = routes.iter().flat_map(|route| route.compute_stages());
    let own = stages.flat_map(|stage| stage.on_device(device));
    Need::of(&parts.graph, own, cache, parts.devices[device.0].packing)
}

#[cfg(test)]
mod tests;
