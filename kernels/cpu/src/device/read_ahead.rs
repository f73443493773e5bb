//! Weights of a mapped file are requested from the disk before nodes need them, so that the disk works on many requests at once.
//!
//! Which experts a layer needs is known when their node begins: all of their weights are requested at once. The matrices of matmuls are requested
//! some nodes before. A node whose weights were not in memory begins when they are there.
//!
//! Weights that fit into memory are looked at once, and then a few of them in each run; if some of these are missing, all are looked at
//! again. Weights that are larger than memory are looked at each time.

use super::model::BoundModel;
use super::stage::Stage;
use crate::packed::mapped::Mapped;
use lapwing_model::device::{DeviceError, Observer};
use lapwing_model::graph::Node;
use lapwing_model::op::{ExpertsOp, Op};
use lapwing_model::part::Part;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of matrices that are requested before their nodes: what a fast disk reads in some milliseconds.
const AHEAD_BYTES: usize = 32 << 20;
/// Of so many parts that were in memory, one is looked at again in each run.
const AGAIN: usize = 64;
/// Bytes of the smallest pages of memory.
const PAGE: usize = 4096;

/// What is known of the mapped weights of a model.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// The first part of each node: a matmul has one, experts have one each.
    first_part: Vec<usize>,
    /// Whether a part was in memory, or has been requested; never set for weights that are larger than memory.
    is_here: Vec<AtomicBool>,
    /// Runs so far.
    runs: AtomicUsize,
}

/// Buffers of one run.
#[derive(Debug, Default)]
pub(super) struct ReadBuffers {
    /// What was requested for nodes that have not begun.
    requested: Vec<Requested>,
    /// By expert: whether a row has chosen it.
    is_chosen: Vec<bool>,
}

/// Weights of a node that were not in memory.
#[derive(Debug)]
struct Requested {
    node: usize,
    place: Range<usize>,
}

/// A run of a stage, whose weights are in a mapped file.
pub(super) struct Reading<'a> {
    ahead: &'a ReadAhead,
    model: &'a BoundModel,
    mapped: &'a Mapped,
    buffers: &'a mut ReadBuffers,
    /// One past the stage's last node.
    end: usize,
    /// The first node whose matrix is not yet requested.
    next: usize,
    /// Bytes of the matrices that are requested, of nodes that have not begun.
    ahead_bytes: usize,
    /// Number of this run.
    run: usize,
    /// Bytes that were requested since the last report.
    read: usize,
}

impl ReadAhead {
    /// Nothing is known. `None` if the weights are not mapped, or are beside those of another model, of which only some are.
    pub(super) fn new(model: &BoundModel) -> Option<ReadAhead> {
        model.weights.mapped().filter(|_| model.graph.given_width() == 0)?;
        let mut parts = 0;
        let first_part = model.graph.nodes().iter().map(|node| {
            let first = parts;
            parts += match &node.op {
                Op::MatMul { .. } => 1,
                Op::Experts(op) => op.count,
                _ => 0,
            };
            first
        });
        let first_part = first_part.collect();
        let is_here = (0..parts).map(|_| AtomicBool::new(false)).collect();
        Some(ReadAhead { first_part, is_here, runs: AtomicUsize::new(0) })
    }

    /// Begins a run of some nodes. `None` if the weights are not mapped any more.
    pub(super) fn begin<'a>(
        &'a self,
        model: &'a BoundModel,
        nodes: &Range<usize>,
        buffers: &'a mut ReadBuffers,
    ) -> Option<Reading<'a>> {
        let mapped = model.weights.mapped().filter(|mapped| !mapped.is_copied())?;
        buffers.requested.clear();
        Some(Reading {
            ahead: self,
            model,
            mapped,
            buffers,
            end: nodes.end,
            next: nodes.start,
            ahead_bytes: 0,
            run: self.runs.fetch_add(1, Ordering::Relaxed),
            read: 0,
        })
    }
}

impl Reading<'_> {
    /// Requests the weights of some nodes, and those of matmuls behind them, and waits for the former. Reports this, if anything was
    /// missing.
    pub(super) fn before(
        &mut self,
        nodes: &Range<usize>,
        stage: &Stage<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), DeviceError> {
        for at in nodes.clone() {
            let node = &self.model.graph.nodes()[at];
            if let Op::Experts(op) = &node.op {
                self.experts(at, op, stage.part, stage.whole(node, 1)?);
            }
            if at < self.next {
                self.ahead_bytes -= self.matrix(node, stage.part).map_or(0, |place| place.len());
            }
        }
        while self.next < nodes.end {
            self.request_next(stage.part);
        }
        while self.next < self.end && self.ahead_bytes < AHEAD_BYTES {
            self.ahead_bytes += self.request_next(stage.part);
        }
        let has_waited = self.wait(nodes);
        if has_waited || self.read > 0 {
            observer.weights_read(std::mem::take(&mut self.read) as u64);
        }
        Ok(())
    }

    /// Requests the matrix of the next node, if it is a matmul; returns the bytes of the matrix.
    fn request_next(&mut self, part: &Part) -> usize {
        let at = self.next;
        self.next += 1;
        let Some(place) = self.matrix(&self.model.graph.nodes()[at], part) else { return 0 };
        if self.looks_at(self.ahead.first_part[at]) {
            self.request(at, self.ahead.first_part[at], &place);
        }
        place.len()
    }

    /// Where the part's channels of a matmul's matrix are.
    fn matrix(&self, node: &Node, part: &Part) -> Option<Range<usize>> {
        let Op::MatMul { weight, .. } = node.op else { return None };
        let packed = self.model.weights.packed(weight);
        let features = part.features.of_width(packed.rows());
        Some(packed.channels(features).place())
    }

    /// Requests those of a part's experts that a route chooses.
    fn experts(&mut self, node: usize, op: &ExpertsOp, part: &Part, route: &[f32]) {
        self.buffers.is_chosen.clear();
        self.buffers.is_chosen.resize(op.count, false);
        for expert in route.chunks_exact(2 * op.used).flat_map(|row| &row[..op.used]) {
            self.buffers.is_chosen[op.expert_of(*expert)] = true;
        }
        for expert in part.experts_of(op.count) {
            let part = self.ahead.first_part[node] + expert;
            if !self.buffers.is_chosen[expert] || !self.looks_at(part) {
                continue;
            }
            for matrix in op.matrices() {
                let start = expert * matrix.stride + matrix.first;
                let packed = self.model.weights.packed(matrix.weight);
                let place = packed.channels(start..start + matrix.rows).place();
                self.request(node, part, &place);
            }
        }
    }

    /// Whether a part may be missing, or it is its turn.
    fn looks_at(&self, part: usize) -> bool {
        let is_here = self.ahead.is_here[part].load(Ordering::Relaxed);
        !is_here || (part + self.run).is_multiple_of(AGAIN)
    }

    /// Requests what is missing of a part of a node.
    fn request(&mut self, node: usize, part: usize, place: &Range<usize>) {
        let (requested, mut missing) = (&mut self.buffers.requested, 0);
        self.mapped.request(place, |place| {
            missing += place.len();
            requested.push(Requested { node, place });
        });
        self.read += missing;
        if self.mapped.beyond().is_some() {
            return;
        }
        if missing > 0 && self.ahead.is_here[part].load(Ordering::Relaxed) {
            let all = self.ahead.is_here.iter();
            all.for_each(|is_here| is_here.store(false, Ordering::Relaxed));
        }
        self.ahead.is_here[part].store(true, Ordering::Relaxed);
    }

    /// Waits for what was requested for these nodes: touches each page on the pool. Returns whether there was anything.
    fn wait(&mut self, nodes: &Range<usize>) -> bool {
        let ReadBuffers { requested, .. } = &mut *self.buffers;
        let is_mine = |one: &Requested| nodes.contains(&one.node);
        if !requested.iter().any(is_mine) {
            return false;
        }
        let weights = self.mapped.bytes();
        self.model.cpu.pool().run(requested.len(), &|i| {
            if is_mine(&requested[i]) {
                let bytes = &weights[requested[i].place.clone()];
                bytes.iter().step_by(PAGE).chain(bytes.last()).for_each(|byte| {
                    black_box(*byte);
                });
            }
        });
        requested.retain(|one| !is_mine(one));
        true
    }
}
