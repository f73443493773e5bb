//! The kernels of a device and their launches.
//!
//! A launch checks that its operands fit in their buffers; kernels replace ids, positions and pages
//! that are out of range. So no launch reads or writes beyond a buffer, whatever the values are.

mod attention;
mod gather;
mod matmul;
mod persistent;
mod probe;
mod programs;
mod rows;
mod tuning;
mod views;
mod warm;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::discovery::OpenClKind;
use super::error::OpenClError;
use super::pack::{PANEL, RunOrder, Stored};
use super::program::ProgramCache;
use super::session::{Arg, Buffer, Lane, Range, Session};
pub(super) use attention::{Attention, KvRows, KvWrite, RopeKv};
pub(super) use gather::{Embed, SelectRows};
use lapwing_model::formats::DType;
use lapwing_model::kv::KvDtype;
pub(super) use matmul::{Fused, MatMul, Norm};
pub(super) use persistent::PERSISTENT_ROWS;
use persistent::{Parameter, Recorder};
use programs::Built;
pub(super) use programs::Family;
pub(super) use rows::{Add, Gated, RmsNorm, Rope, RopeHeads, Unary, UnaryOp};
#[cfg(test)]
pub(super) use tuning::{FewRows, ManyRows};
pub(super) use tuning::{Shapes, Tuned};
use views::int;
pub(super) use views::{Ints, View};

/// Bytes of a value.
const F32: usize = size_of::<f32>();

/// A weight matrix `[rows, cols]` in a device's memory, packed for the kernels.
#[derive(Debug)]
pub(super) struct Matrix {
    buffer: Buffer,
    dtype: DType,
    order: RunOrder,
    rows: usize,
    cols: usize,
}

/// Bytes that are packed at a time.
const UPLOAD: usize = 8 << 20;

impl Matrix {
    /// Packs a matrix, copies it to the device and waits. `bytes` are those of a GGUF file; `name` is
    /// named in errors.
    ///
    /// # Panics
    /// If `bytes` are not a matrix of that format and shape.
    pub(super) fn upload(
        session: &Session,
        stored: Stored<'_>,
        name: &str,
    ) -> Result<Matrix, OpenClError> {
        let Stored { dtype, rows, cols, .. } = stored;
        let buffer = session.buffer(stored.packed_bytes(), name)?;
        let panel_bytes = stored.panel_words() * size_of::<u32>();
        let step = (UPLOAD / panel_bytes.max(1)).max(1);
        let order = order(is_cpu(session));
        let panels = super::pack::panels(rows);
        for first in (0..panels).step_by(step) {
            let words = stored.pack(first..panels.min(first + step), order);
            let bytes = bytemuck::cast_slice(&words);
            session.write(Lane::Transfer, &buffer, first * panel_bytes, bytes)?;
        }
        Ok(Matrix { buffer, dtype, order, rows, cols })
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        self.buffer.bytes()
    }

    /// Output channels.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Input channels.
    pub(super) fn cols(&self) -> usize {
        self.cols
    }
}

/// What the kernels of a model are compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelSpec {
    /// Formats of the weight matrices.
    pub(super) dtypes: Vec<DType>,
    /// Values per head, of every kind of attention layer.
    pub(super) head_dims: Vec<usize>,
    /// Positions of a KV page.
    pub(super) page_rows: usize,
    /// Storage type of keys and values.
    pub(super) kv: KvDtype,
}

/// The kernels of a device. A program is compiled when one of its kernels is first launched, or by
/// [`Kernels::warm_up`].
#[derive(Debug)]
pub(super) struct Kernels {
    session: Arc<Session>,
    cache: ProgramCache,
    spec: KernelSpec,
    /// Whether the device is a CPU, which runs a work-group on one core.
    is_cpu: bool,
    built: BTreeMap<Family, Built>,
    /// The shapes of matmuls, by the number of their format.
    tuned: BTreeMap<u32, Tuned>,
    /// Shapes that replace the tuned ones.
    forced: Option<Shapes>,
    /// The parameters of the kernels that were launched, until there is a persistent kernel.
    parameters: BTreeMap<(Family, &'static str), Vec<Parameter>>,
    /// The persistent kernel, whose ops launches may become.
    recorder: Option<Recorder>,
    /// Why there is none, if that is worth a note.
    unrecorded: Option<String>,
}

impl Kernels {
    /// Kernels of a model; compiles nothing.
    ///
    /// # Errors
    /// [`OpenClError::Unusable`] for a storage type of keys and values that the kernels lack.
    pub(super) fn new(
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
    pub(super) fn is_cpu(&self) -> bool {
        self.is_cpu
    }

    /// The same kernels, launched as on a GPU.
    #[cfg(test)]
    pub(super) fn in_groups(self) -> Kernels {
        Kernels { is_cpu: false, ..self }
    }

    /// Makes all matmuls have these shapes.
    #[cfg(test)]
    pub(super) fn force(&mut self, shapes: Shapes) {
        self.forced = Some(shapes);
    }

    /// Files of compiled programs that were not used, or a kernel that is not, and why.
    pub(super) fn refused(&self) -> Vec<String> {
        let persistent = self.recorder.iter().map(Recorder::program);
        let refused = self.built.values().chain(persistent).filter_map(Built::refused);
        refused.chain(self.unrecorded.clone()).collect()
    }

    /// Writes the programs that were compiled, and not loaded, to the folder.
    pub(super) fn save(&self, cache: &ProgramCache) {
        let persistent = self.recorder.iter().map(Recorder::program);
        let all = self.built.values().chain(persistent);
        all.for_each(|built| built.save(&self.session, cache));
    }

    /// # Panics
    /// If a matrix is not in the order that the kernels read.
    fn check_order(&self, matrix: &Matrix) {
        assert_eq!(matrix.order, order(self.is_cpu), "the order of a matrix");
    }

    /// Most segments that a work-group of a GPU sums; none on a CPU. The order of sums depends on it.
    fn slices(&self) -> Option<usize> {
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

    /// Launches a kernel for `items` work-items.
    ///
    /// # Safety
    /// The arguments must be those of the kernel, in number and type, and every item must stay within
    /// the buffers; items beyond `items` in the first dimension must do nothing.
    #[expect(unsafe_code, reason = "launches kernels")]
    unsafe fn launch(
        &mut self,
        (family, name): (Family, &'static str),
        args: &[Arg<'_>],
        items: [usize; 3],
    ) -> Result<(), OpenClError> {
        // SAFETY: the caller's promise.
        if unsafe { self.recorded((family, name), args, items) }? {
            return Ok(());
        }
        let (session, is_cpu) = (Arc::clone(&self.session), self.is_cpu);
        let kernel = self.built(family)?.kernel(&session, name)?;
        // A CPU driver spreads groups over cores, and its items are vectors already.
        let local = if is_cpu { 1 } else { kernel.group_max.clamp(1, GROUP) };
        let groups = [items[0].div_ceil(local), items[1], items[2]];
        let range = Range { groups, local: [local, 1, 1] };
        // SAFETY: the caller's promise.
        unsafe { session.launch(kernel, args, range) }
    }

    /// Whether a kernel whose work-groups of `items` share their outputs is to be used. A CPU driver
    /// runs a group on one core, so groups only add barriers there.
    fn shares(
        &mut self,
        (family, name): (Family, &'static str),
        items: usize,
    ) -> Result<bool, OpenClError> {
        let session = Arc::clone(&self.session);
        if self.is_cpu || session.info().group_max < items {
            return Ok(false);
        }
        Ok(self.built(family)?.kernel(&session, name)?.group_max >= items)
    }

    /// Launches a kernel whose items work together, for whole groups.
    ///
    /// # Safety
    /// As [`launch`](Kernels::launch); the groups must be those that the kernel states.
    #[expect(unsafe_code, reason = "launches kernels")]
    unsafe fn launch_groups(
        &mut self,
        (family, name): (Family, &'static str),
        args: &[Arg<'_>],
        range: Range,
    ) -> Result<(), OpenClError> {
        // SAFETY: the caller's promise.
        if unsafe { self.recorded((family, name), args, range.groups) }? {
            return Ok(());
        }
        let session = Arc::clone(&self.session);
        let kernel = self.built(family)?.kernel(&session, name)?;
        // SAFETY: the caller's promise.
        unsafe { session.launch(kernel, args, range) }
    }
}

/// The order of weights that kernels for a CPU read, or those for a GPU.
fn order(is_cpu: bool) -> RunOrder {
    if is_cpu { RunOrder::ByWord } else { RunOrder::ByChannel }
}

/// Whether kernels are launched as on a CPU.
fn is_cpu(session: &Session) -> bool {
    session.info().kind == OpenClKind::Cpu && !is_as_on_gpu()
}

/// Work-items of a group on a GPU, where they do not work together.
const GROUP: usize = 64;

/// Fewest and most segments of a sum that a work-group of a GPU shares.
const SLICES_MIN: usize = 8;
const SLICES_MAX: usize = 64;

/// Shapes that replace the tuned ones. In a test of the kernels of GPUs on a CPU the latter would not be
/// chosen.
fn forced() -> Option<Shapes> {
    #[cfg(test)]
    if is_as_on_gpu() {
        return Some(Shapes { many: ManyRows::Group, few: FewRows::Group });
    }
    None
}

#[cfg(test)]
thread_local! {
    /// Whether kernels that this thread makes are launched as on a GPU.
    pub(super) static AS_ON_GPU: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// Whether they may have a persistent kernel, of one group.
    pub(super) static PERSISTENT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// The kernels that this thread launched.
    pub(super) static LAUNCHED: std::cell::RefCell<Vec<&'static str>> =
        const { std::cell::RefCell::new(Vec::new()) };
}

/// Whether a test wants the launches of a GPU on any device.
fn is_as_on_gpu() -> bool {
    #[cfg(test)]
    return AS_ON_GPU.get();
    #[cfg(not(test))]
    false
}

/// Whether a test wants a persistent kernel on any device.
fn is_persistent_on_any() -> bool {
    #[cfg(test)]
    return PERSISTENT.get();
    #[cfg(not(test))]
    false
}
