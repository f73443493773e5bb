//! Blocking of a dispatch, and what its threads prefetch.

use super::{caches, weight};
use crate::context::Cpu;
use crate::gemm::blocking::{Blocking, BlockingInput, panel_of};
use crate::gemm::dispatch::{BlockEnd, NextDispatch, read_after};
use crate::isa::Isa;
use crate::loops::quantize::QuantScheme;
use crate::pool::{AfterBlock, NextBlock};
use lapwing_model::formats::DType;

#[test]
fn tasks_and_panels_fit_the_caches() {
    let (n, k, m) = (1536, 576, 512);
    for isa in Isa::available() {
        let shape = isa.shape();
        for (first, second) in [(16 << 10, 128 << 10), (32 << 10, 1 << 20), (64 << 10, 4 << 20)] {
            let caches = caches(first, second);
            let cpu = Cpu::new(2, isa).with_caches(caches);
            for groups in [1, 8, 10, 18, 20, 48, 800] {
                let panel = panel_of(cpu.panel_groups(), groups);
                let what = format!("{} {caches:?}: {panel} of {groups}", isa.name());
                assert!(panel == groups || panel < groups && panel.is_multiple_of(8), "{what}");
                let bytes = panel * (shape.panel_group_bytes + shape.rows * 48);
                assert!(panel > 0 && (panel <= 8 || bytes <= first), "{what}");
            }
            let weight = weight(&cpu, DType::Q4_0, n, k);
            let reads = BlockingInput { weight: weight.all(), is_gated: false };
            let cut = Blocking::of(&cpu, &reads, m, n / 16, 1);
            let bytes = cut.rows * (k / 32 * 48 + cut.tiles * 64);
            assert!(bytes <= second, "{} {caches:?}: {cut:?}", isa.name());
            assert!(cut.rows.is_multiple_of(shape.rows), "{} {cut:?}", isa.name());
            assert!(cut.tiles.is_multiple_of(shape.tiles), "{} {cut:?}", isa.name());
        }
    }
}

#[test]
fn the_next_dispatch_starts_with_the_thread_s_own_weights() {
    let cpu = Cpu::new(2, Isa::best());
    let [q, k, v] = [(576, 64), (192, 64), (192, 64)].map(|(n, k)| weight(&cpu, DType::Q4_0, n, k));
    let next_dispatch = |weights, is_gated, output_scheme| NextDispatch {
        weights,
        is_gated,
        output_scheme,
        gemv_plan: None,
    };
    let start =
        |next: &NextDispatch<'_>, thread| next.first_read(&cpu, 1, thread).map(<[u8]>::as_ptr);
    // 60 tiles in tasks of 8: 5 of q, 2 of k, 2 of v; the second thread has the last 5.
    let all = next_dispatch([Some(q.all()), Some(k.all()), Some(v.all()), None], false, None);
    assert_eq!(start(&all, 0), Some(q.all().bytes_from(0).as_ptr()));
    assert_eq!(start(&all, 1), Some(q.all().bytes_from(4 * 8 * 16).as_ptr()));
    assert_eq!(start(&all, 2), None);
    // 12 tiles in tasks of 2, or of 16 if 256 columns are quantised at once.
    let one = |output_scheme| next_dispatch([Some(k.all()), None, None, None], true, output_scheme);
    assert_eq!(start(&one(None), 1), Some(k.all().bytes_from(3 * 2 * 16).as_ptr()));
    assert_eq!(start(&one(Some(QuantScheme::Q8K(32))), 0), Some(k.all().bytes_from(0).as_ptr()));
    assert_eq!(start(&one(Some(QuantScheme::Q8K(32))), 1), None);
    assert_eq!(start(&NextDispatch::default(), 0), None);
    // A precomputed plan gives the same.
    for next in [all, one(None), one(Some(QuantScheme::Q8K(32))), NextDispatch::default()] {
        let tasks = next.gemv_plan(&cpu);
        let known = NextDispatch { gemv_plan: Some(&tasks), ..next.clone() };
        (0..3).for_each(|thread| assert_eq!(start(&known, thread), start(&next, thread)));
    }
}

#[test]
fn only_weights_within_the_prefetch_distance_are_prefetched() {
    let cpu = Cpu::new(2, Isa::best());
    // 18 KiB and 576 bytes per tile.
    let [large, small] = [1024, 32].map(|k| weight(&cpu, DType::Q8_0, 64, k));
    let (large, small) = (large.all(), small.all());
    let weights = |index: usize| [Some(large.clone()), Some(small.clone())][index].clone();
    let next =
        NextDispatch { weights: [Some(small.clone()), None, None, None], ..Default::default() };
    let first_read = |thread| next.first_read(&cpu, 1, thread);
    let after = |index, end, until, next| {
        let (end, after) = (BlockEnd { index, channel: end }, AfterBlock { until, next });
        read_after(&cpu, end, after, weights, &first_read).map(<[u8]>::as_ptr)
    };
    let nothing = |thread| NextBlock::EndOfJob { thread };
    let block = NextBlock::Block { index: 1, col: 32 };
    assert_eq!(after(0, 16, 32, block), None, "a tile of 18 KiB is between");
    assert_eq!(after(0, 32, 32, block), Some(small.bytes_from(32).as_ptr()));
    assert_eq!(after(1, 16, 64, block), Some(small.bytes_from(32).as_ptr()));
    assert_eq!(after(0, 64, 64, nothing(0)), Some(small.bytes_from(0).as_ptr()));
    assert_eq!(after(0, 64, 64, nothing(1)), Some(small.bytes_from(32).as_ptr()));
    assert_eq!(after(0, 48, 64, nothing(1)), None);
}
