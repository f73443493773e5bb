//! Attention and the streaming ops allocate nothing once they are warm.
#![expect(unsafe_code, reason = "an allocator that counts")]

use lapwing_kernels::cpu::{self, AttentionJob, AttentionMask, AttentionSpan, Cpu, Isa};
use lapwing_kernels::cpu::{RopeFreqs, RopeShape};
use lapwing_kernels::kv::{KvDtype, KvLayout, KvStore};
use lapwing_kernels::op::{Activation, RopePairs, RopeScaling};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ROWS: usize = 40;
const HEADS: usize = 6;
const HEAD_DIM: usize = 32;

/// One thread, so that the first call warms the one thread that every later call uses.
fn attend(dtype: KvDtype, mask: AttentionMask<'_>) {
    let cpu = Cpu::new(1, Isa::best());
    let layout = KvLayout { layers: 1, kv_heads: 2, head_dim: HEAD_DIM, page_rows: 32, dtype };
    let pages: Vec<u32> = (0..layout.pages_for(700) as u32).collect();
    let kv = KvStore::new(layout, pages.len() as u32).expect("memory");
    let k = vec![0.5; 700 * 2 * HEAD_DIM];
    let q = vec![0.25; ROWS * HEADS * HEAD_DIM];
    let mut out = vec![0.0; q.len()];
    let spans = [
        AttentionSpan { rows: 0..ROWS - 1, start_pos: 600, pages: &pages },
        AttentionSpan { rows: ROWS - 1..ROWS, start_pos: 10, pages: &pages },
    ];
    let mut step = || {
        kv.layer(0).write(&cpu, &pages, 0, (&k, &k));
        let kv = kv.layer(0);
        let job = AttentionJob {
            kv: &kv,
            q: &q,
            spans: &spans,
            heads: HEADS,
            scale: 1.0,
            mask,
            soft_cap: Some(3.0),
        };
        cpu::attention(&cpu, &job, &mut out);
    };
    assert_silent(&mut step, &format!("{dtype:?} {mask:?}"));
}

/// Fails when the second call of `step` allocates.
fn assert_silent(step: &mut dyn FnMut(), what: &str) {
    step();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    step();
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "{what}");
}

/// One test, because tests of one process run side by side and share the count.
#[test]
fn a_warm_step_allocates() {
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::I8] {
        attend(dtype, AttentionMask::Causal);
        attend(dtype, AttentionMask::Window(70));
        attend(dtype, AttentionMask::Dilated { count: 9, stride: 50 });
    }
    let cpu = Cpu::new(2, Isa::best());
    let x = vec![0.5; 64 * 1024];
    let mut out = vec![0.0; x.len()];
    let freqs = RopeFreqs::new(10_000.0, 64, RopeScaling::None, None);
    let angles = freqs.angles(&[7; 64]);
    let shape = RopeShape { heads: 16, head_dim: 64, pairs: RopePairs::Halves };
    let mut step = || {
        cpu::add(&cpu, &x, &x, &mut out);
        cpu::rms_norm(&cpu, &x, &x[..1024], 1e-5, &mut out);
        cpu::gated(&cpu, Activation::Silu, &x, &x, &mut out);
        cpu::rope(&cpu, &x, shape, &angles, &mut out);
    };
    assert_silent(&mut step, "streaming ops");
}
