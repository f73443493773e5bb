//! The choice of a matmul's kernels: by the device's features, and among the kernels that suit them by
//! a short measurement with the device's own clock, whose result is kept beside the programs.

use super::kernels::Kernels;
use super::matmul::MatMul;
use super::matrix::Matrix;
use super::programs::{Family, RUN};
use super::shapes::{Candidates, FewRows, ManyRows, Shapes, Tuned};
use super::variants::{GROUP, GROUP_MEMORY, TILE_STEPS, few_in_groups};
use super::views::{F32, View};
use crate::error::OpenClError;
use crate::pack::CHANNELS;
use crate::session::{Event, EventState};
use lapwing_model::formats::DType;

/// Work that is measured: rows, output channels, input channels. A GPU has many units to be filled.
const MANY: [usize; 3] = [192, 1024, 512];
const MANY_OF_GPU: [usize; 3] = [512, 2048, 1024];
const FEW: [usize; 3] = [1, 4096, 1024];

/// Runs of each kernel, of which the fastest counts.
const RUNS: usize = 5;

impl Kernels {
    /// A CPU driver runs a work-group on one core, so groups only add barriers there; elsewhere wide
    /// items have few neighbours to hide the latency of memory.
    fn candidates(&mut self, dtype: DType) -> Candidates {
        if self.is_cpu {
            let default = Shapes { many: ManyRows::Tile(TILE_STEPS[0]), few: FewRows::Wide };
            let many = TILE_STEPS.map(ManyRows::Tile).to_vec();
            return Candidates { many, few: vec![], default };
        }
        if !self.can_group(dtype) {
            let default = Shapes { many: ManyRows::AsFew, few: FewRows::Wide };
            return Candidates { many: vec![], few: vec![], default };
        }
        let default = Shapes { many: ManyRows::Group, few: FewRows::Group };
        let many = vec![ManyRows::Group, ManyRows::AsFew];
        Candidates { many, few: vec![FewRows::Group, FewRows::Wide], default }
    }

    /// Whether the device has the local memory and the groups that the kernels of groups need. Drivers
    /// understate the groups of a kernel, so each kernel is launched once.
    fn can_group(&mut self, dtype: DType) -> bool {
        if self.session.info().local_memory < GROUP_MEMORY {
            return false;
        }
        let forced = self.forced.replace(Shapes { many: ManyRows::Group, few: FewRows::Group });
        let launched = self.launch_groups_once(dtype);
        self.forced = forced;
        launched.is_ok()
    }

    /// Launches every kernel of groups on zeros, and waits.
    fn launch_groups_once(&mut self, dtype: DType) -> Result<(), OpenClError> {
        const WHAT: &str = "a trial of kernels";
        let slices = self.slices().unwrap_or(1);
        let short = RUN.next_multiple_of(dtype.block_len());
        let long = (RUN * slices).next_multiple_of(dtype.block_len());
        let rows = GROUP.rows;
        let out = self.session.buffer(rows * CHANNELS * F32, WHAT)?;
        let x = self.session.filled(&vec![0; rows * long * F32], WHAT)?;
        for cols in [short, long] {
            let shape = [CHANNELS, cols];
            let weight = Matrix::repeated(&self.session, dtype, shape, [0; 2], WHAT)?;
            let few = few_in_groups(slices).map(|few| few.rows);
            for rows in few.into_iter().chain([rows]) {
                let from = View { buffer: &x, at: 0, stride: cols };
                let to = View { buffer: &out, at: 0, stride: CHANNELS };
                let job = MatMul::plain(from, rows, &weight, to);
                self.matmul_each_way(&job, &x)?;
            }
        }
        self.session.finish()
    }

    /// The kernels of matmuls of a format.
    pub(super) fn shapes(&mut self, dtype: DType) -> Shapes {
        if let Some(shapes) = self.forced {
            return shapes;
        }
        if let Some(tuned) = self.tuned.get(&dtype.gguf_id()) {
            return tuned.shapes;
        }
        let default = self.candidates(dtype).default;
        self.tuned.insert(dtype.gguf_id(), Tuned::of(vec![], vec![], default));
        default
    }

    /// Chooses the kernels of matmuls of a format: those that an earlier start measured with the same
    /// driver and kernels, or those that are fastest now. Waits.
    pub(crate) fn tune(&mut self, dtype: DType) -> Result<Tuned, OpenClError> {
        if let Some(shapes) = self.forced {
            return Ok(Tuned::of(vec![], vec![], shapes));
        }
        let candidates = self.candidates(dtype);
        let text = Family::matmul(dtype).source(&self.spec, self.slices());
        let cache = self.cache.clone();
        let known = cache.measured(&self.session, &text.source());
        let known = known.and_then(|text| Tuned::parse(&text, &candidates));
        let tuned = match known {
            Some(tuned) => tuned,
            None => {
                let tuned = self.measure(dtype, &candidates)?;
                if !tuned.many.is_empty() || !tuned.few.is_empty() {
                    cache.save_measured(&self.session, &text.source(), &tuned.to_text());
                }
                tuned
            }
        };
        self.tuned.insert(dtype.gguf_id(), tuned.clone());
        Ok(tuned)
    }

    fn measure(&mut self, dtype: DType, of: &Candidates) -> Result<Tuned, OpenClError> {
        let Candidates { many, few, default } = of;
        let forced = self.forced.take();
        let many_shapes: Vec<_> =
            many.iter().map(|many| Shapes { many: *many, ..*default }).collect();
        let few_shapes: Vec<_> = few.iter().map(|few| Shapes { few: *few, ..*default }).collect();
        let size = if self.is_cpu { MANY } else { MANY_OF_GPU };
        let many_ns = self.times(dtype, size, &many_shapes);
        let few_ns = self.times(dtype, FEW, &few_shapes);
        self.forced = forced;
        let many = many.iter().copied().zip(many_ns?).collect();
        let few = few.iter().copied().zip(few_ns?).collect();
        Ok(Tuned::of(many, few, *default))
    }

    /// The fastest run of each of the shapes, in nanoseconds; empty if the device has no clock.
    fn times(
        &mut self,
        dtype: DType,
        [rows, outputs, inputs]: [usize; 3],
        shapes: &[Shapes],
    ) -> Result<Vec<u64>, OpenClError> {
        const WHAT: &str = "a measurement of kernels";
        if shapes.is_empty() || self.session.info().timer_ns == 0 {
            return Ok(Vec::new());
        }
        let shape = [outputs, inputs];
        let weight = Matrix::repeated(&self.session, dtype, shape, [0; 2], WHAT)?;
        let x = self.session.filled(&vec![0; rows * inputs * F32], WHAT)?;
        let out = self.session.buffer(rows * outputs * F32, WHAT)?;
        let from = View { buffer: &x, at: 0, stride: inputs };
        let to = View { buffer: &out, at: 0, stride: outputs };
        let job = MatMul::plain(from, rows, &weight, to);
        let mut times = vec![u64::MAX; shapes.len()];
        // The first run of a kernel may compile it, so it does not count.
        for run in 0..=RUNS {
            for (time, shapes) in times.iter_mut().zip(shapes) {
                self.forced = Some(*shapes);
                let begin = self.session.marker()?;
                self.matmul(&job)?;
                let end = self.session.marker()?;
                self.session.finish()?;
                if run > 0 {
                    *time = (*time).min(between(&begin, &end).unwrap_or(u64::MAX));
                }
            }
        }
        let is_known = times.iter().all(|ns| *ns != u64::MAX);
        Ok(if is_known { times } else { Vec::new() })
    }
}

/// Nanoseconds of the device's clock between two events that have ended.
pub(super) fn between(begin: &Event, end: &Event) -> Option<u64> {
    let is_ended = [begin, end].map(Event::state) == [EventState::Complete; 2];
    let (begin, end) = (begin.end_ns()?, end.end_ns()?);
    end.checked_sub(begin).filter(|ns| is_ended && *ns > 0)
}
