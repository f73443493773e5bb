//! Test support: cases of attention, their keys and values in pages, and masks.

use std::sync::Arc;

use half::f16;
use lapwing_kernels::cpu::{Activations, AttentionJob, AttentionSequence, Cpu, Isa, KvRows};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayer, KvLayout, KvStore, PageId};
use lapwing_kernels::mask::{BlockList, Mask};

use crate::support::noise;

/// Sizes of an attention over one sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    /// Values of a query and of a key.
    pub(crate) head_dim: usize,
    /// Values of a value, if they are not as many.
    pub(crate) value_dim: Option<usize>,
    pub(crate) page_rows: usize,
    pub(crate) positions: usize,
    pub(crate) mask: &'static Mask,
    pub(crate) soft_cap: Option<f32>,
    pub(crate) slopes: Option<&'static [f32]>,
    pub(crate) sinks: Option<&'static [f32]>,
    pub(crate) dtype: KvDtype,
}

pub(crate) const PLAIN: Case = Case {
    heads: 6,
    kv_heads: 2,
    head_dim: 16,
    value_dim: None,
    page_rows: 32,
    positions: 70,
    mask: &Mask::Causal,
    soft_cap: None,
    slopes: None,
    sinks: None,
    dtype: KvDtype::F16,
};

/// Among the scores of [`noise`], far below and above them.
const SINKS: [f32; 9] = [0.5, -1.0, 3.0, 0.0, -30.0, 8.0, 1.5, -0.25, 2.0];

/// Sinks of so many heads.
pub(crate) const fn sinks(heads: usize) -> Option<&'static [f32]> {
    Some(SINKS.split_at(heads).0)
}

impl Case {
    /// Its keys and values.
    fn kv(&self) -> KvHeads {
        let value_dim = self.value_dim.unwrap_or(self.head_dim);
        KvHeads { count: self.kv_heads, key_dim: self.head_dim, value_dim }
    }

    /// Values of a row of its output.
    pub(crate) fn out_width(&self) -> usize {
        self.heads * self.kv().value_dim
    }
}

/// The queries, keys and values of a case, the latter two as they are after storage.
pub(crate) struct Sequence {
    pub(crate) q: Vec<f32>,
    pub(crate) k: Vec<f32>,
    pub(crate) v: Vec<f32>,
    pub(crate) pages: Vec<PageId>,
    pub(crate) store: KvStore,
}

/// Values of heads of `head_dim` values after storage in `dtype`.
pub(crate) fn after_storage(dtype: KvDtype, head_dim: usize, x: &[f32]) -> Vec<f32> {
    match dtype {
        KvDtype::F32 => x.to_vec(),
        KvDtype::F16 => x.iter().map(|x| f16::from_f32(*x).to_f32()).collect(),
        KvDtype::I8 => x.chunks(head_dim).flat_map(rounded_to_i8).collect(),
    }
}

fn rounded_to_i8(head: &[f32]) -> Vec<f32> {
    let highest = head.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    let (scale, inverse) = (highest / 127.0, 127.0 / highest);
    head.iter().map(|x| (x * inverse).round_ties_even() * scale).collect()
}

/// Writes all keys and values to pages that are neither adjacent nor in order, between pages full
/// of infinities.
pub(crate) fn sequence(case: &Case) -> Sequence {
    let heads = case.kv();
    let k = noise(2, case.positions * heads.key_width());
    let v = noise(3, case.positions * heads.value_width());
    let before = KvHeads::new(case.kv_heads + 1, 8);
    let (page_rows, dtype) = (case.page_rows, case.dtype);
    let (layers, states) = ([before, heads].into(), Vec::new().into());
    let layout = KvLayout { layers, states, page_rows, dtype };
    let count = layout.pages_for(case.positions) as u32;
    let pages: Vec<PageId> = (0..count).rev().map(|i| 2 * i + 1).collect();
    let store = KvStore::new(layout, 2 * count + 1).expect("memory");
    let all: Vec<PageId> = (0..2 * count + 1).collect();
    let poison = |width: usize| vec![f32::INFINITY; all.len() * case.page_rows * width];
    let (bad_k, bad_v) = (poison(heads.key_width()), poison(heads.value_width()));
    let cpu = Cpu::new(2, Isa::best());
    let mut layer = store.layer(1);
    KvRows { pages: &all, start_pos: 0, k: &bad_k, v: &bad_v }.write(&cpu, &mut layer);
    KvRows { pages: &pages, start_pos: 0, k: &k, v: &v }.write(&cpu, &mut layer);
    drop(layer);
    let q = noise(1, case.positions * case.heads * case.head_dim);
    let k = after_storage(dtype, heads.key_dim, &k);
    let v = after_storage(dtype, heads.value_dim, &v);
    Sequence { q, k, v, pages, store }
}

pub(crate) fn job<'a>(
    case: &Case,
    s: &'a Sequence,
    kv: &'a KvLayer<'a>,
    sequences: &'a [AttentionSequence<'a>],
) -> AttentionJob<'a> {
    AttentionJob {
        kv,
        q: &s.q,
        sequences,
        heads: case.heads,
        scale: 0.5,
        mask: case.mask,
        slopes: case.slopes,
        sinks: case.sinks,
        soft_cap: case.soft_cap,
    }
}

/// Keys up to its own that the row at `pos` sees, by the definition of the mask.
pub(crate) fn seen(mask: &Mask, pos: usize) -> Vec<usize> {
    let sees = |key: &usize| match mask {
        Mask::Causal | Mask::Full => true,
        Mask::Around(most) => pos - key <= *most,
        Mask::Window(window) => key + window > pos,
        Mask::Dilated { count, stride } => (0..*count).any(|i| key + i * stride == pos),
        Mask::Blocks { blocks, window } => {
            let len = blocks.block_len();
            window.is_none_or(|window| key + window > pos)
                && blocks.listed().contains(&((pos / len) as u32, (key / len) as u32))
        }
    };
    (0..=pos).filter(sees).collect()
}

/// Whether attention rounds its operands to bfloat16.
pub(crate) fn multiplies_pairs(cpu: &Cpu, dtype: KvDtype) -> bool {
    cpu.isa().name() == "avx512-bf16"
        && cpu.activations() == Activations::Int8
        && dtype != KvDtype::F32
}

/// Rows of blocks 1, 4 and 9 see no key; some rows see only blocks far before their own.
const LISTED: [(u32, u32); 12] = [
    (0, 0),
    (2, 0),
    (2, 2),
    (3, 1),
    (5, 2),
    (6, 6),
    (7, 0),
    (7, 3),
    (7, 7),
    (8, 7),
    (10, 4),
    (10, 11),
];

/// A mask for all cases.
pub(crate) fn kept(mask: Mask) -> &'static Mask {
    Box::leak(Box::new(mask))
}

pub(crate) fn sparse_masks() -> Vec<&'static Mask> {
    let dilated = [(1, 1), (5, 3), (100, 2), (4, 60), (3, 200)];
    let dilated = dilated.map(|(count, stride)| kept(Mask::Dilated { count, stride }));
    let blocks = [(1, None), (7, None), (24, None), (32, None), (7, Some(20)), (24, Some(33))];
    let blocks = blocks.map(|(len, window)| {
        let blocks = Arc::new(BlockList::new(len, LISTED).expect("a list"));
        kept(Mask::Blocks { blocks, window })
    });
    dilated.into_iter().chain(blocks).collect()
}
