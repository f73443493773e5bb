//! The persistent kernel of a model: one launch computes many ops of a run of few rows, where each would
//! take a launch of its own.

mod check;
mod text;

use std::sync::Arc;

use super::programs::{Built, Family, ROW_ITEMS, Variant};
use super::tuning::FewRows;
use super::{Arg, F32, Kernels, MatMul, int};
use crate::error::OpenClError;
use crate::pack::PANEL;
use crate::session::{Buffer, Persistent, PersistentOp};
pub(super) use text::Parameter;
use text::{NORM, Numbers, program};

/// Most rows of a run whose ops a persistent kernel computes.
pub(crate) const PERSISTENT_ROWS: usize = 4;

/// Words of local memory for the groups that are computed side by side.
const MEMORY: usize = 4096 + 128;

/// Local memory that its groups need, in bytes.
const LOCAL_MEMORY: u64 = 36 << 10;

/// Kernels for few rows whose groups compute several panels, so that they read the rows less often.
const GEMVS: [Variant; 7] = {
    const fn gemv(name: &'static str, rows: usize, panels: usize) -> Variant {
        Variant { name, rows, panels, slices: 0 }
    }
    [
        gemv("gemv_1_1", 1, 1),
        gemv("gemv_1_2", 1, 2),
        gemv("gemv_1_4", 1, 4),
        gemv("gemv_2_1", 2, 1),
        gemv("gemv_2_2", 2, 2),
        gemv("gemv_4_1", 4, 1),
        gemv("gemv_4_2", 4, 2),
    ]
};

/// The kernel for so many rows of so many panels of outputs, with so many groups on the device: of those whose
/// groups all have work, the one with the most panels. `has_gates`: each output panel takes two of the matrix.
fn gemv_for(rows: usize, panels: usize, (groups, has_gates): (usize, bool)) -> Option<Variant> {
    let each = if has_gates { 2 } else { 1 };
    let takes = |gemv: &Variant| {
        gemv.rows >= rows
            && gemv.panels >= each
            && panels > (gemv.panels / each - 1) * groups
            // An item that sums 8 outputs has no registers left; with gates there is no smaller kernel.
            && (has_gates || gemv.rows * gemv.panels < 8)
    };
    let fitting = GEMVS.into_iter().filter(takes);
    fitting.min_by_key(|gemv| (gemv.rows, std::cmp::Reverse(gemv.panels)))
}

/// The numbers of the kernels that a persistent kernel has.
#[derive(Debug)]
pub(super) struct Recorder {
    numbers: Numbers,
    groups: usize,
    /// Whether launches become its ops.
    is_on: bool,
    program: Built,
    /// Memory for the rows that each group norms for itself: the last is the largest, and ops may name others.
    normed: Vec<Arc<Buffer>>,
}

impl Recorder {
    pub(super) fn program(&self) -> &Built {
        &self.program
    }
}

impl Kernels {
    /// Whether the device's features suit a persistent kernel, and how many groups it may have.
    fn persistent_groups(&mut self) -> Option<usize> {
        let slices = self.slices()?;
        let info = self.session.info();
        let items = PANEL * slices;
        let groups = match info.may_be_persistent() {
            true => info.units as usize,
            false if super::is_persistent_on_any() => 1,
            false => return None,
        };
        let slots = items / ROW_ITEMS;
        let of_head = |head_dim: &usize| slots * (head_dim + 2 * ROW_ITEMS) <= MEMORY;
        let is_enough = info.local_memory >= LOCAL_MEMORY
            && info.group_max >= items
            && slots > 0
            && items.is_multiple_of(ROW_ITEMS)
            && self.spec.head_dims.iter().all(of_head)
            && !self.spec.dtypes.is_empty();
        let dtypes = self.spec.dtypes.clone();
        let in_groups = |dtype| self.shapes(dtype).few == FewRows::Group;
        (is_enough && dtypes.into_iter().all(in_groups)).then_some(groups)
    }

    /// Builds the persistent kernel of the model, for a GPU. Every kernel must have been launched once.
    ///
    /// # Errors
    /// If the driver does not compile it, or there is no memory.
    pub(crate) fn build_persistent(&mut self) -> Result<bool, OpenClError> {
        let (Some(groups), Some(slices)) = (self.persistent_groups(), self.slices()) else {
            return Ok(false);
        };
        let (text, numbers) = program(&self.spec, &self.parameters, slices);
        let program = Built::new(&self.session, &self.cache, text)?;
        let kernel = |name| program.take(&self.session, name);
        let kernels = [kernel("persistent")?, kernel("address_of")?];
        let size = [groups, PANEL * slices];
        let persistent = Persistent::new(&self.session, kernels, size)?;
        self.session.set_persistent(Some(persistent));
        self.recorder =
            Some(Recorder { numbers, groups, is_on: false, program, normed: Vec::new() });
        Ok(true)
    }

    /// Makes launches for few rows ops of the persistent kernel, where there is one, or ends that.
    pub(crate) fn record(&mut self, is_on: bool) {
        if let Some(recorder) = &mut self.recorder {
            recorder.is_on = is_on;
        }
    }

    /// Whether there is a persistent kernel.
    pub(crate) fn has_persistent(&self) -> bool {
        self.recorder.is_some()
    }

    /// Whether launches become ops of the persistent kernel.
    pub(crate) fn is_recording(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.is_on)
    }

    /// Removes the persistent kernel, and waits for its launches.
    pub(crate) fn drop_persistent(&mut self) -> Result<(), OpenClError> {
        // Launches name the recorder's buffers by address.
        let recorder = self.recorder.take();
        self.session.set_persistent(None);
        let finished = self.session.finish();
        drop(recorder);
        finished
    }

    /// The number of a kernel, if its launch is to be an op of the persistent kernel.
    fn number(&self, kernel: (Family, &'static str)) -> Option<u32> {
        let recorder = self.recorder.as_ref().filter(|recorder| recorder.is_on)?;
        recorder.numbers.get(&kernel).copied()
    }

    /// Makes a launch an op of the persistent kernel; returns whether it is one.
    ///
    /// # Safety
    /// As [`launch`](Kernels::launch).
    #[expect(unsafe_code, reason = "launches kernels")]
    pub(super) unsafe fn recorded(
        &mut self,
        kernel: (Family, &'static str),
        args: &[Arg<'_>],
        size: [usize; 3],
    ) -> Result<bool, OpenClError> {
        #[cfg(test)]
        super::LAUNCHED.with_borrow_mut(|launched| launched.push(kernel.1));
        if self.recorder.is_none() {
            self.parameters.entry(kernel).or_insert_with(|| Parameter::of(args));
        }
        let Some(number) = self.number(kernel) else { return Ok(false) };
        // SAFETY: the caller's promise.
        unsafe { self.session.record(&PersistentOp { number, size, args, is_for_next: false }) }?;
        Ok(true)
    }

    /// Adds the norm of the rows of a matmul, if it has one, that is the next op of the persistent kernel. Returns
    /// where the normed rows are.
    #[expect(unsafe_code, reason = "records an op")]
    pub(super) fn record_norm(
        &mut self,
        job: &MatMul<'_>,
    ) -> Result<Option<Arc<Buffer>>, OpenClError> {
        let Some(norm) = job.fused.norm else { return Ok(None) };
        let number = self.number(NORM).expect("every persistent kernel norms");
        let cols = job.weight.cols;
        let normed = self.normed(cols)?;
        let [x, at, stride] = job.x.args();
        let (gain, to) = (Arg::Buffer(norm.gain), Arg::Buffer(&normed));
        let args = [x, at, stride, gain, to, int(job.rows), int(cols), Arg::Float(norm.eps)];
        let op = PersistentOp { number, size: [1; 3], args: &args, is_for_next: true };
        // SAFETY: NORM_PARAMETERS; the rows of a matmul's x are in their buffer, and there is room for those of
        // each group.
        unsafe { self.session.record(&op) }?;
        Ok(Some(normed))
    }

    /// Memory for rows of so many values of each group, as NORMED_AT in persistent_place.cl.
    fn normed(&mut self, cols: usize) -> Result<Arc<Buffer>, OpenClError> {
        let recorder = self.recorder.as_mut().expect("a persistent kernel");
        let bytes = recorder.groups * PERSISTENT_ROWS * cols.next_multiple_of(4) * F32;
        if let Some(last) = recorder.normed.last().filter(|last| last.bytes() >= bytes) {
            return Ok(Arc::clone(last));
        }
        let normed = Arc::new(self.session.buffer(bytes, "normed rows")?);
        recorder.normed.push(Arc::clone(&normed));
        Ok(normed)
    }

    /// The persistent kernel's function for a matmul, if that is to be an op of it.
    pub(super) fn persistent_gemv(&self, job: &MatMul<'_>) -> Option<Variant> {
        let recorder = self.recorder.as_ref()?;
        let panels = job.outputs().div_ceil(PANEL);
        let has_gates = job.fused.gate.is_some();
        let gemv = gemv_for(job.rows, panels, (recorder.groups, has_gates))?;
        let family = Family::matmul_group(job.weight.dtype);
        self.number((family, gemv.name))?;
        Some(gemv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_several_panels_only_where_all_of_them_have_work() {
        let name = |rows, panels, has_gates| {
            gemv_for(rows, panels, (132, has_gates)).map(|gemv| gemv.name)
        };
        let rows = [
            ((1, 128, false), "gemv_1_1"),
            ((1, 132, false), "gemv_1_1"),
            ((1, 133, false), "gemv_1_2"),
            ((1, 396, false), "gemv_1_2"),
            ((1, 397, false), "gemv_1_4"),
            ((2, 20, false), "gemv_2_1"),
            ((2, 1024, false), "gemv_2_2"),
            ((3, 1024, false), "gemv_4_1"),
            ((4, 1, false), "gemv_4_1"),
            ((1, 1, true), "gemv_1_2"),
            ((1, 132, true), "gemv_1_2"),
            ((1, 133, true), "gemv_1_4"),
            ((2, 512, true), "gemv_2_2"),
            ((4, 1, true), "gemv_4_2"),
        ];
        for ((rows, panels, gates), wanted) in rows {
            let found = name(rows, panels, gates);
            assert_eq!(found, Some(wanted), "{rows} rows, {panels} panels, gates: {gates}");
        }
        assert_eq!(name(5, 1024, false), None);
        assert!(name(PERSISTENT_ROWS, 1, false).is_some());
    }
}
