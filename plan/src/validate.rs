//! Checks that a route can run.

use std::collections::HashSet;
use std::ops::Range;

use lapwing_kernels::device::{DeviceInfo, GraphKey, ModelId, Prepare};
use lapwing_kernels::graph::{Graph, RowSet};

use crate::complete::complete;
use crate::device::{DeviceId, needs_graphs};
use crate::error::PlanError;
use crate::stage::{Stage, StagePart};

/// The graph, devices and rows that a route is checked against.
#[derive(Clone, Copy, Debug)]
pub struct RouteFor<'a> {
    /// The model.
    pub model: ModelId,
    /// Ops of the model.
    pub graph: &'a Graph,
    /// The engine's devices, indexed by [`DeviceId`].
    pub devices: &'a [DeviceInfo],
    /// Rows of the chunk.
    pub rows: usize,
    /// Rows of the chunk whose logits are computed.
    pub selected: usize,
}

/// Checks the stages of a route: coverage, tiling, devices and graph sizes.
pub(crate) fn stages(stages: &[Stage], of: RouteFor<'_>) -> Result<(), PlanError> {
    compute(stages.iter(), of)
}

/// Checks a complete route: its compute stages, and that the transfers and sampling are
/// those that they are completed with.
pub(crate) fn route(stages: &[Stage], of: RouteFor<'_>) -> Result<(), PlanError> {
    compute(stages.iter().filter(|stage| stage.computes()), of)?;
    let computing = stages.iter().filter(|stage| stage.computes()).cloned();
    match complete(computing.collect(), of).0 == stages {
        true => Ok(()),
        false => Err(PlanError::Incomplete),
    }
}

fn compute<'a>(stages: impl Iterator<Item = &'a Stage>, of: RouteFor<'_>) -> Result<(), PlanError> {
    let mut next = 0;
    for stage in stages {
        if stage.nodes.start != next || stage.nodes.is_empty() {
            return Err(PlanError::Coverage { found: stage.nodes.clone(), expected: next });
        }
        next = stage.nodes.end;
        if next > of.graph.nodes().len() {
            break;
        }
        parts(stage, of)?;
        for StagePart { device, .. } in &stage.parts {
            if device.0 >= of.devices.len() {
                let (device, devices) = (device.0, of.devices.len());
                return Err(PlanError::NoDevice { device, devices });
            }
        }
        for part in &stage.parts {
            device(stage, part, of)?;
        }
    }
    if next != of.graph.nodes().len() {
        return Err(PlanError::Coverage { found: next..next, expected: of.graph.nodes().len() });
    }
    Ok(())
}

/// Checks that each device can keep all its graphs of a route at the same time.
pub(crate) fn budgets(graphs: &[(DeviceId, GraphKey)], of: RouteFor<'_>) -> Result<(), PlanError> {
    for (number, info) in of.devices.iter().enumerate() {
        let Some(budget) = &info.budget else { continue };
        let keys: HashSet<&GraphKey> =
            graphs.iter().filter(|(d, _)| d.0 == number).map(|(_, key)| key).collect();
        let bytes: u64 = keys.iter().map(|key| budget.graph_bytes(of.graph, key)).sum();
        if bytes > budget.bytes {
            let (device, graphs) = (info.name.clone(), keys.len());
            return Err(PlanError::Budget { device, graphs, bytes, budget: budget.bytes });
        }
    }
    Ok(())
}

/// Checks that what a route places on each device fits into the device's own memory.
pub(crate) fn rooms(stages: &[Stage], of: RouteFor<'_>) -> Result<(), PlanError> {
    for (number, info) in of.devices.iter().enumerate() {
        let Some(room) = &info.room else { continue };
        let nodes = stages.iter().flat_map(|stage| stage.on_device(DeviceId(number)));
        let need = info.need(of.graph, nodes);
        if need.bytes() > room.bytes {
            let (device, room) = (info.name.clone(), room.bytes);
            return Err(PlanError::Memory { device, weights: need.weights, kv: need.kv, room });
        }
    }
    Ok(())
}

/// Checks that parts that are cut by experts have each expert once.
fn by_experts(stage: &Stage, of: RouteFor<'_>) -> Result<(), &'static str> {
    let Some(op) = of.graph.can_cut_experts(stage.nodes.clone()) else {
        return Err("only a stage of one op of experts can be divided by experts");
    };
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for StagePart { part, .. } in &stage.parts {
        let Some(own) = part.experts.clone() else {
            return Err("some parts are divided by experts and others not");
        };
        if part.rows.is_some() || !part.features.is_whole() {
            return Err("a part with some experts has all rows and output channels");
        }
        if own.is_empty() {
            return Err("a part is empty");
        }
        ranges.push(own);
    }
    ranges.sort_by_key(|range| range.start);
    let mut next = 0;
    let follows = |range: &Range<usize>| std::mem::replace(&mut next, range.end) == range.start;
    match ranges.iter().all(follows) && next == op.count {
        true => Ok(()),
        false => Err("some experts belong to no part or to several"),
    }
}

/// Checks that the parts tile rows × output channels, or the experts, and that the nodes can be divided that way.
fn parts(stage: &Stage, of: RouteFor<'_>) -> Result<(), PlanError> {
    let fail =
        |problem| Err(PlanError::Parts { nodes: stage.nodes.clone(), rows: of.rows, problem });
    if stage.parts.iter().any(|part| part.part.experts.is_some()) {
        by_experts(stage, of).or_else(fail)?;
    }
    let Some(first) = stage.parts.first() else { return fail("the stage has no part") };
    let units = first.part.features.of;
    let mut rectangles: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (at, StagePart { device, part }) in stage.parts.iter().enumerate() {
        let rows = part.rows.clone().unwrap_or(0..of.rows);
        let features = part.features.from..part.features.to;
        if stage.parts[..at].iter().any(|other| other.device == *device) {
            return fail("one device has two parts");
        }
        if part.features.of != units || units == 0 {
            return fail("the parts count output channels in different units");
        }
        if rows.start > rows.end || rows.end > of.rows || features.end > units {
            return fail("a part exceeds the rows or output channels of the stage");
        }
        if stage.parts.len() > 1 && (rows.is_empty() || features.is_empty()) {
            return fail("a part is empty");
        }
        if part.experts.is_some() {
            continue;
        }
        let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        if rectangles.iter().any(|(r, f)| overlap(r, &rows) && overlap(f, &features)) {
            return fail("two parts overlap");
        }
        if part.rows.is_some() && !of.graph.can_cut_rows(stage.nodes.clone()) {
            return fail("the rows of these nodes cannot be divided");
        }
        if !part.features.is_whole() && !of.graph.can_cut_features(stage.nodes.clone()) {
            return fail("the output channels of these nodes cannot be divided");
        }
        rectangles.push((rows, features));
    }
    if first.part.experts.is_some() {
        return Ok(());
    }
    let area: usize = rectangles.iter().map(|(r, f)| r.len() * f.len()).sum();
    if area != of.rows * units {
        return fail("some rows or output channels belong to no part");
    }
    Ok(())
}

/// Checks that the device has a kernel for each node, and graphs for all rows of the part.
fn device(stage: &Stage, part: &StagePart, of: RouteFor<'_>) -> Result<(), PlanError> {
    let StagePart { device: DeviceId(number), part } = part;
    let info: &DeviceInfo = &of.devices[*number];
    let fail = |problem: String| {
        Err(PlanError::Device { nodes: stage.nodes.clone(), device: info.name.clone(), problem })
    };
    let nodes = &of.graph.nodes()[stage.nodes.clone()];
    if let Some(node) = nodes.iter().find(|node| !info.runs(&node.op)) {
        return fail(format!("it has no kernel for {} ('{}')", node.op.name(), node.role));
    }
    if !needs_graphs(info) {
        return match part.graphs.is_empty() {
            true => Ok(()),
            false => fail("it does not run prepared graphs".to_owned()),
        };
    }
    let selected = nodes.iter().all(|n| of.graph.value(n.output).rows == RowSet::Selected);
    let rows = match &part.rows {
        _ if selected => of.selected,
        Some(rows) => rows.len(),
        None => of.rows,
    };
    let prepared: usize = part.graphs.iter().sum();
    if prepared < rows {
        return fail(format!("its graphs hold {prepared} rows, but the part has {rows}"));
    }
    let fits = |size: usize| match stage.prepare {
        Prepare::Ahead => info.sizes.contains(&size),
        // On the spot, graphs of any multiple of the tile size can be prepared, and smaller ones.
        Prepare::OnTheSpot => {
            size > 0 && (size < info.row_alignment || size.is_multiple_of(info.row_alignment))
        }
    };
    if let Some(size) = part.graphs.iter().find(|size| !fits(**size)) {
        return fail(match stage.prepare {
            Prepare::Ahead => format!("{size} rows is not one of its graph sizes {:?}", info.sizes),
            Prepare::OnTheSpot => {
                let align = info.row_alignment;
                format!("{size} rows is neither a multiple of {align} nor below {align}")
            }
        });
    }
    Ok(())
}
