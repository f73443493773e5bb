//! The kernels of a model, and how they are launched.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::built::Built;
use super::matrix::Matrix;
use super::persistent::{Parameter, Recorder};
use super::programs::{Family, KernelId, KernelSpec};
use super::shapes::{Shapes, Tuned};
#[cfg(test)]
use super::target::LAUNCHED;
use super::target::{forced, is_cpu, order};
use crate::error::OpenClError;
use crate::pack::PANEL;
use crate::program::ProgramCache;
use crate::session::{Arg, Kernel, PersistentOp, Range, Session};
use lapwing_model::kv::KvDtype;

/// Work-items of a group on a GPU, where they do not work together.
const GROUP: usize = 64;

/// Fewest and most segments of a sum that a work-group of a GPU shares.
const SLICES_MIN: usize = 8;
const SLICES_MAX: usize = 64;

/// The kernels of a device. A program is compiled when one of its kernels is first launched, or by
/// [`Kernels::warm_up`].
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(super) session: Arc<Session>,
    pub(super) cache: ProgramCache,
    pub(super) spec: KernelSpec,
    /// Whether the device is a CPU, which runs a work-group on one core.
    pub(super) is_cpu: bool,
    built: BTreeMap<Family, Built>,
    /// The shapes of matmuls, by the number of their format.
    pub(super) tuned: BTreeMap<u32, Tuned>,
    /// Shapes that replace the tuned ones.
    pub(super) forced: Option<Shapes>,
    /// The parameters of the kernels that were launched, until there is a persistent kernel.
    pub(super) parameters: BTreeMap<KernelId, Vec<Parameter>>,
    /// The persistent kernel, whose ops launches may become.
    pub(super) recorder: Option<Recorder>,
    /// Why there is none, if that is worth a note.
    pub(super) unrecorded: Option<String>,
}

impl Kernels {
    /// Kernels of a model; compiles nothing.
    ///
    /// # Errors
    /// [`OpenClError::Unusable`] for a storage type of keys and values that the kernels lack.
    pub(crate) fn new(
        session: &Arc<Session>,
        cache: &ProgramCache,
        spec: &KernelSpec,
    ) -> Result<Kernels, OpenClError> {
        if spec.kv == KvDtype::I8 {
            return Err(OpenClError::Unusable {
                device: session.info().name.clone(),
                reason: "its kernels store keys and values as f32 or f16, not int8".to_owned(),
            });
        }
        Ok(Kernels {
            session: Arc::clone(session),
            cache: cache.clone(),
            spec: spec.clone(),
            is_cpu: is_cpu(session),
            built: BTreeMap::new(),
            tuned: BTreeMap::new(),
            forced: forced(),
            parameters: BTreeMap::new(),
            recorder: None,
            unrecorded: None,
        })
    }

    /// Whether they are launched as on a CPU.
    #[cfg(test)]
    pub(crate) fn is_cpu(&self) -> bool {
        self.is_cpu
    }

    /// From now on, the kernels are launched as on a GPU.
    #[cfg(test)]
    pub(crate) fn launch_in_groups(&mut self) {
        self.is_cpu = false;
    }

    /// Makes all matmuls have these shapes.
    #[cfg(test)]
    pub(crate) fn force(&mut self, shapes: Shapes) {
        self.forced = Some(shapes);
    }

    /// Files of compiled programs that were not used, or a kernel that is not, and why.
    pub(crate) fn refused(&self) -> Vec<String> {
        let persistent = self.recorder.iter().map(Recorder::program);
        let refused = self.built.values().chain(persistent).filter_map(Built::refused);
        refused.chain(self.unrecorded.clone()).collect()
    }

    /// Writes the programs that were compiled, and not loaded, to the folder.
    pub(crate) fn save(&self, cache: &ProgramCache) {
        let persistent = self.recorder.iter().map(Recorder::program);
        let all = self.built.values().chain(persistent);
        all.for_each(|built| built.save(cache));
    }

    /// # Panics
    /// If a matrix is not in the order that the kernels read.
    pub(super) fn check_order(&self, matrix: &Matrix) {
        assert_eq!(matrix.order, order(self.is_cpu), "the order of a matrix");
    }

    /// Most segments that a work-group of a GPU sums; none on a CPU. The order of sums depends on it.
    pub(super) fn slices(&self) -> Option<usize> {
        let most = (self.session.info().group_max / PANEL).clamp(SLICES_MIN, SLICES_MAX);
        (!self.is_cpu).then(|| 1 << most.ilog2())
    }

    /// The program of a family, built if it is not yet.
    fn built(&mut self, family: Family) -> Result<&mut Built, OpenClError> {
        if !self.built.contains_key(&family) {
            let source = family.source(&self.spec, self.slices());
            let built = Built::new(&self.session, &self.cache, source)?;
            self.built.insert(family, built);
        }
        Ok(self.built.get_mut(&family).expect("it was inserted"))
    }

    /// A kernel, whose program is built if it is not yet.
    fn kernel(&mut self, id: KernelId) -> Result<&mut Kernel, OpenClError> {
        self.built(id.family)?.kernel(id.name)
    }

    /// Launches a kernel for `items` work-items.
    ///
    /// # Safety
    /// The arguments must be those of the kernel, in number and type, and every item must stay within
    /// the buffers; items beyond `items` in the first dimension must do nothing.
    #[expect(unsafe_code, reason = "launches kernels")]
    pub(super) unsafe fn launch(
        &mut self,
        kernel: KernelId,
        args: &[Arg<'_>],
        items: [usize; 3],
    ) -> Result<(), OpenClError> {
        // SAFETY: the caller's promise.
        if unsafe { self.recorded(kernel, args, items) }? {
            return Ok(());
        }
        let (session, is_cpu) = (Arc::clone(&self.session), self.is_cpu);
        let kernel = self.kernel(kernel)?;
        // A CPU driver spreads groups over cores, and its items are vectors already.
        let local = if is_cpu { 1 } else { kernel.group_max.clamp(1, GROUP) };
        let groups = [items[0].div_ceil(local), items[1], items[2]];
        let range = Range { groups, local: [local, 1, 1] };
        // SAFETY: the caller's promise.
        unsafe { session.launch(kernel, args, range) }
    }

    /// Whether a kernel whose work-groups of `items` share their outputs is to be used. A CPU driver
    /// runs a group on one core, so groups only add barriers there.
    pub(super) fn shares(&mut self, kernel: KernelId, items: usize) -> Result<bool, OpenClError> {
        if self.is_cpu || self.session.info().group_max < items {
            return Ok(false);
        }
        Ok(self.kernel(kernel)?.group_max >= items)
    }

    /// Launches a kernel whose items work together, for whole groups.
    ///
    /// # Safety
    /// As [`launch`](Kernels::launch); the groups must be those that the kernel states.
    #[expect(unsafe_code, reason = "launches kernels")]
    pub(super) unsafe fn launch_groups(
        &mut self,
        kernel: KernelId,
        args: &[Arg<'_>],
        range: Range,
    ) -> Result<(), OpenClError> {
        // SAFETY: the caller's promise.
        if unsafe { self.recorded(kernel, args, range.groups) }? {
            return Ok(());
        }
        let session = Arc::clone(&self.session);
        let kernel = self.kernel(kernel)?;
        // SAFETY: the caller's promise.
        unsafe { session.launch(kernel, args, range) }
    }

    /// Makes a launch an op of the persistent kernel; returns whether it is one.
    ///
    /// # Safety
    /// As [`launch`](Kernels::launch).
    #[expect(unsafe_code, reason = "launches kernels")]
    unsafe fn recorded(
        &mut self,
        kernel: KernelId,
        args: &[Arg<'_>],
        size: [usize; 3],
    ) -> Result<bool, OpenClError> {
        #[cfg(test)]
        LAUNCHED.with_borrow_mut(|launched| launched.push(kernel.name));
        if self.recorder.is_none() {
            self.parameters.entry(kernel).or_insert_with(|| Parameter::of(args));
        }
        let number = self.recorder.as_ref().and_then(|recorder| recorder.number(kernel));
        let Some(number) = number else { return Ok(false) };
        // SAFETY: the caller's promise.
        unsafe { self.session.record(&PersistentOp { number, size, args, is_for_next: false }) }?;
        Ok(true)
    }
}
