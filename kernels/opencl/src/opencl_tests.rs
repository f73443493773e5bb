//! Kernels against the naive reference, on the first OpenCL device of this machine.

mod attention;
mod compiled;
mod curves;
mod experts;
mod fused;
mod gather;
mod matmul;
mod pack;
mod races;
mod route;
mod rows;
mod states;
mod sums;

use std::sync::Arc;

use compiled::Kept;
pub(super) use compiled::{driver_keeps_kernels, programs_of_all};

use super::discovery::find;
use super::ops::{AS_ON_GPU, FewRows, HeadDims, Ints, KernelSpec, Kernels, ManyRows, Shapes, View};
use super::pool::BufferPool;
use super::program::ProgramCache;
use super::session::{Buffer, Lane, Session};
use lapwing_model::formats::DType;
use lapwing_model::kv::KvDtype;

/// A device and its kernels.
struct Bench {
    session: Arc<Session>,
    kernels: Kept,
}

/// These cases of a quick run, or all.
pub(super) fn cases<T>(quick: T, full: T) -> T {
    match std::env::var("LAPWING_TEST").is_ok_and(|which| which == "full") {
        true => full,
        false => quick,
    }
}

/// Positions of a KV page in the tests.
const PAGE_ROWS: usize = 32;

/// The first device, or the one that LAPWING_TEST_OPENCL names. Without a driver the test is skipped
/// aloud, or fails where LAPWING_TEST is set.
fn bench(page_rows: usize, kv: KvDtype) -> Option<Bench> {
    needs_driver!(None);
    let wanted = std::env::var("LAPWING_TEST_OPENCL").unwrap_or_default();
    let session = Session::open(&find(&wanted).unwrap()).unwrap();
    let spec = KernelSpec { page_rows, kv, ..KernelSpec::default() };
    Some(Bench { kernels: Kept::new(&session, &spec), session })
}

fn plain() -> Option<Bench> {
    bench(PAGE_ROWS, KvDtype::F32)
}

/// As [`plain`], with launches as on a GPU.
fn grouped() -> Option<Bench> {
    let mut bench = plain()?;
    // From here on, matrices are packed as for a GPU.
    AS_ON_GPU.set(true);
    bench.kernels.launch_in_groups();
    Some(bench)
}

/// Every choice of kernels for matmuls, those for GPUs included.
const SHAPES: [Shapes; 7] = [
    Shapes { many: ManyRows::Tile(4), few: FewRows::Wide },
    Shapes { many: ManyRows::Tile(6), few: FewRows::Wide },
    Shapes { many: ManyRows::Tile(8), few: FewRows::Wide },
    Shapes { many: ManyRows::Tile(12), few: FewRows::Wide },
    Shapes { many: ManyRows::AsFew, few: FewRows::Wide },
    Shapes { many: ManyRows::AsFew, few: FewRows::Group },
    Shapes { many: ManyRows::Group, few: FewRows::Group },
];

impl Bench {
    /// Every choice of kernels for matmuls that the launches of this kind have.
    fn shapes(&self) -> &'static [Shapes] {
        if self.kernels.is_cpu() { &SHAPES[..5] } else { &SHAPES[4..] }
    }

    fn floats(&self, values: &[f32]) -> Buffer {
        self.session.filled(bytemuck::cast_slice(values), "a test").unwrap()
    }

    fn ints(&self, values: &[i32]) -> Buffer {
        self.session.filled(bytemuck::cast_slice(values), "a test").unwrap()
    }

    fn read(&self, buffer: &Buffer) -> Vec<f32> {
        let mut values = vec![0.0; buffer.bytes() / 4];
        self.session.read(Lane::Compute, buffer, 0, bytemuck::cast_slice_mut(&mut values)).unwrap();
        values
    }

    fn read_ints(&self, buffer: &Buffer) -> Vec<i32> {
        let mut values = vec![0; buffer.bytes() / 4];
        self.session.read(Lane::Compute, buffer, 0, bytemuck::cast_slice_mut(&mut values)).unwrap();
        values
    }

    /// Rows in a buffer with NaNs around them: before the first, between rows, and after the last.
    fn guarded(&self, rows: &[f32], width: usize) -> Guarded {
        self.guarded_at(rows, width, 3, width + 5)
    }

    /// As [`guarded`](Bench::guarded), where each row begins at a multiple of 4 values.
    fn aligned(&self, rows: &[f32], width: usize) -> Guarded {
        self.guarded_at(rows, width, 4, (width + 1).next_multiple_of(4))
    }

    fn guarded_at(&self, rows: &[f32], width: usize, at: usize, stride: usize) -> Guarded {
        let count = rows.len() / width;
        let mut values = vec![f32::NAN; at + count * stride + 16];
        for (row, x) in rows.chunks(width).enumerate() {
            values[at + row * stride..][..width].copy_from_slice(x);
        }
        Guarded { buffer: self.floats(&values), at, width, stride, count }
    }

    /// Room for rows, with NaNs everywhere.
    fn room(&self, count: usize, width: usize) -> Guarded {
        self.guarded(&vec![f32::NAN; count * width], width)
    }

    /// The rows in a buffer; checks that nothing was written around them.
    fn rows(&self, guarded: &Guarded) -> Vec<f32> {
        let (values, mut rows) = (self.read(&guarded.buffer), Vec::new());
        for (i, value) in values.iter().enumerate() {
            let at = i.checked_sub(guarded.at).map(|i| (i / guarded.stride, i % guarded.stride));
            match at {
                Some((row, col)) if row < guarded.count && col < guarded.width => rows.push(*value),
                _ => assert!(
                    value.is_nan(),
                    "value {i} beside the rows was overwritten with {value}"
                ),
            }
        }
        rows
    }
}

/// Rows in a buffer of their own.
struct Guarded {
    buffer: Buffer,
    at: usize,
    width: usize,
    stride: usize,
    count: usize,
}

impl Guarded {
    fn view(&self) -> View<'_> {
        self.row(0)
    }

    fn row(&self, row: usize) -> View<'_> {
        View { buffer: &self.buffer, at: self.at + row * self.stride, stride: self.stride }
    }
}

fn ints(buffer: &Buffer) -> Ints<'_> {
    Ints { buffer, at: 0 }
}

/// Numbers between −1 and 1, the same for a seed.
fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Checks that values differ from the reference by at most `tolerance` of the larger of 1 and their
/// magnitude.
fn assert_near(found: &[f32], wanted: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let error = (f64::from(*found) - wanted).abs();
        let most = tolerance * wanted.abs().max(1.0);
        assert!(error <= most, "{what}: value {i} is {found}, not {wanted}");
    }
}
#[test]
fn what_one_queue_wrote_the_other_reads() {
    let Some(bench) = plain() else { return };
    let lanes = [Lane::Transfer, Lane::Compute];
    for (to, from) in lanes.into_iter().flat_map(|to| lanes.map(|from| (to, from))) {
        for len in [1, 16, 100, 1000, 100_000].repeat(20) {
            let (x, mut y) = (noise(len as u32, len), vec![0.0; len]);
            let buffer = bench.session.buffer(len * 4, "a test").unwrap();
            bench.session.write(to, &buffer, 0, bytemuck::cast_slice(&x)).unwrap();
            bench.session.read(from, &buffer, 0, bytemuck::cast_slice_mut(&mut y)).unwrap();
            assert!(bits(&x) == bits(&y), "{len} values from {to:?} to {from:?}");
        }
    }
}

#[test]
fn values_of_equal_runs_have_the_same_buffers() {
    let Some(bench) = plain() else { return };
    let pool = BufferPool::new(&bench.session);
    let run = || {
        let [first, second, large] = [100, 5000, 9000].map(|bytes| pool.take(bytes).unwrap());
        let found = [&first, &second, &large].map(|pooled| pooled.buffer().id());
        drop(first);
        let third = pool.take(3000).unwrap();
        // Not the order in which they were taken.
        let found = [found[0], found[1], found[2], third.buffer().id()];
        drop((large, third, second));
        found
    };
    let first = run();
    assert_eq!([run(), run()], [first, first]);
    assert_eq!(first[0], first[3], "a buffer that was given back");
}

#[test]
fn warmed_up_programs_are_loaded_from_the_folder_and_not_written_again() {
    let Some(Bench { session, kernels }) = plain() else { return };
    let is_cpu = kernels.is_cpu();
    let folder = tempfile::tempdir().unwrap();
    let cache = ProgramCache::new(Some(folder.path().to_owned()));
    let spec = KernelSpec {
        dtypes: vec![DType::Q4_0, DType::F32],
        experts: vec![DType::Q4_0],
        head_dims: vec![HeadDims { key: 64, value: 64 }, HeadDims { key: 40, value: 24 }],
        convolves: true,
        key_dims: vec![16],
        page_rows: PAGE_ROWS,
        kv: KvDtype::F16,
    };
    let warmed = || {
        let mut kernels = Kernels::new(&session, &cache, &spec).unwrap();
        kernels.warm_up().unwrap();
        kernels.save(&cache);
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| {
            let path = file.unwrap().path();
            let written = path.metadata().unwrap().modified().unwrap();
            (path, written)
        });
        let mut files: Vec<_> = files.collect();
        files.sort();
        files
    };
    let first = warmed();
    // Ops on rows, two kinds of attention, two matmuls with their measurements, two embeddings, experts, convolutions and linear
    // attention; for a GPU ops on rows, matmuls and experts also in groups.
    let files = if is_cpu { 12..=12 } else { 15..=16 };
    assert!(files.contains(&first.len()), "{first:?}");
    assert_eq!(warmed(), first);
}

#[test]
fn kernels_are_measured_once_and_a_damaged_measurement_again() {
    let Some(Bench { session, kernels }) = plain() else { return };
    let candidates = if kernels.is_cpu() { 4 } else { 2 };
    let folder = tempfile::tempdir().unwrap();
    let cache = ProgramCache::new(Some(folder.path().to_owned()));
    let tuned = || {
        let mut kernels = Kernels::new(&session, &cache, &KernelSpec::default()).unwrap();
        kernels.tune(DType::Q4_0).unwrap()
    };
    let first = tuned();
    assert_eq!(first.many.len(), candidates);
    let fastest = first.many.iter().min_by_key(|(_, ns)| *ns).unwrap().0;
    assert_eq!(first.shapes.many, fastest);
    // Equal times of a second measurement would be a coincidence.
    assert_eq!(tuned(), first);
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(tuned().many.len(), candidates);
    assert_ne!(std::fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_gpu_is_measured_with_kernels_of_both_kinds() {
    let Some(mut bench) = grouped() else { return };
    let tuned = bench.kernels.tune(DType::Q8_0).unwrap();
    assert_eq!(
        tuned.many.iter().map(|(many, _)| many.name()).collect::<Vec<_>>(),
        ["group", "wide"]
    );
    assert_eq!(tuned.few.iter().map(|(few, _)| few.name()).collect::<Vec<_>>(), ["group", "wide"]);
}
