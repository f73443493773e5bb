//! Checks that a route can be run.

use std::collections::HashSet;
use std::ops::Range;

use lapwing_kernels::device::{DeviceInfo, GraphKey, Prepare};
use lapwing_kernels::graph::RowSet;

use crate::complete::complete;
use crate::{DeviceId, PlanError, RouteFor, Stage, StagePart};

/// Checks the compute stages of a strategy.
pub(super) fn stages(stages: &[Stage], of: RouteFor<'_>) -> Result<(), PlanError> {
    compute(stages.iter(), of)
}

/// Checks a complete route: its compute stages, and that it is what they are completed to.
pub(super) fn route(stages: &[Stage], of: RouteFor<'_>) -> Result<(), PlanError> {
    compute(stages.iter().filter(|stage| stage.computes()), of)?;
    let expected = complete(stages.iter().filter(|s| s.computes()).cloned().collect(), of)?.0;
    match expected == stages {
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

/// The graphs of a route can be there at the same time.
pub(super) fn budgets(graphs: &[(DeviceId, GraphKey)], of: RouteFor<'_>) -> Result<(), PlanError> {
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

/// The parts tile rows × features, and the nodes can be divided so.
fn parts(stage: &Stage, of: RouteFor<'_>) -> Result<(), PlanError> {
    let fail =
        |problem| Err(PlanError::Parts { nodes: stage.nodes.clone(), rows: of.rows, problem });
    let Some(first) = stage.parts.first() else { return fail("there is no part") };
    let units = first.part.features.of;
    let mut rectangles: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (at, StagePart { device, part }) in stage.parts.iter().enumerate() {
        let rows = part.rows.clone().unwrap_or(0..of.rows);
        let features = part.features.from..part.features.to;
        if stage.parts[..at].iter().any(|other| other.device == *device) {
            return fail("a device has two parts");
        }
        if part.features.of != units || units == 0 {
            return fail("features are counted in different units");
        }
        if rows.start > rows.end || rows.end > of.rows || features.end > units {
            return fail("a part reaches beyond the stage");
        }
        if stage.parts.len() > 1 && (rows.is_empty() || features.is_empty()) {
            return fail("a part is empty");
        }
        let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        if rectangles.iter().any(|(r, f)| overlap(r, &rows) && overlap(f, &features)) {
            return fail("parts overlap");
        }
        if part.rows.is_some() && !of.graph.can_cut_rows(stage.nodes.clone()) {
            return fail("the tokens of these nodes cannot be divided");
        }
        if !part.features.is_whole() && !of.graph.can_cut_features(stage.nodes.clone()) {
            return fail("the features of these nodes cannot be divided");
        }
        rectangles.push((rows, features));
    }
    let area: usize = rectangles.iter().map(|(r, f)| r.len() * f.len()).sum();
    if area != of.rows * units {
        return fail("something is left out");
    }
    Ok(())
}

/// The device has kernels for the nodes, and graphs for the rows.
fn device(stage: &Stage, part: &StagePart, of: RouteFor<'_>) -> Result<(), PlanError> {
    let StagePart { device: DeviceId(number), part } = part;
    let info: &DeviceInfo = &of.devices[*number];
    let fail = |problem: String| {
        Err(PlanError::Device { nodes: stage.nodes.clone(), device: info.name.clone(), problem })
    };
    let nodes = &of.graph.nodes()[stage.nodes.clone()];
    if let Some(node) = nodes.iter().find(|node| !info.runs(&node.op)) {
        return fail(format!("it has no {} ('{}')", node.op.name(), node.role));
    }
    if !info.is_static() {
        return match part.graphs.is_empty() {
            true => Ok(()),
            false => fail("it runs no prepared graphs".to_owned()),
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
        return fail(format!("its graphs hold {prepared} rows, but there are {rows}"));
    }
    let fits = |size: usize| match stage.prepare {
        Prepare::Ahead => info.sizes.contains(&size),
        // Graphs of any length can be prepared for a chunk, as long as the array takes them.
        Prepare::OnTheSpot => size > 0 && size.is_multiple_of(info.row_alignment),
    };
    if let Some(size) = part.graphs.iter().find(|size| !fits(**size)) {
        return fail(match stage.prepare {
            Prepare::Ahead => format!("{size} rows is none of its sizes {:?}", info.sizes),
            Prepare::OnTheSpot => format!("{size} rows is no multiple of {}", info.row_alignment),
        });
    }
    Ok(())
}
