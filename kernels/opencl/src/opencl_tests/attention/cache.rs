//! A KV cache with sequences, and attention over it by the device and by the reference.

use super::super::{Bench, ints, noise};
use crate::ops::{Attention, HeadDims, KvRows, KvWrite};
use crate::session::Buffer;
use lapwing_model::binary16;
use lapwing_model::kv::KvDtype;
use lapwing_model::reference::{self, DenseAttention};

/// Keys, values and queries of a sequence, and the pages that it is written to.
pub(super) struct Sequence {
    pub(super) q: Vec<f32>,
    pub(super) k: Vec<f32>,
    pub(super) v: Vec<f32>,
    pub(super) pages: Vec<i32>,
}

/// A cache with sequences of `lens` positions, whose pages lie mixed up.
pub(super) struct Cache {
    shape: [usize; 5],
    dtype: KvDtype,
    pub(super) sequences: Vec<Sequence>,
    pub(super) kv: Buffer,
}

pub(super) fn page_len([_, kv_heads, key_dim, value_dim, page_rows]: [usize; 5]) -> usize {
    kv_heads * (key_dim + value_dim) * page_rows
}

impl Cache {
    pub(super) fn new(
        bench: &mut Bench,
        shape: [usize; 5],
        dtype: KvDtype,
        lens: &[usize],
    ) -> Cache {
        let [heads, kv_heads, key_dim, value_dim, page_rows] = shape;
        let counts: Vec<usize> = lens.iter().map(|len| len.div_ceil(page_rows)).collect();
        let total: usize = counts.iter().sum();
        // Descending, and those of the sequences one after another.
        let mut free = (1..=total as i32).rev();
        let mut sequences: Vec<Sequence> = Vec::new();
        for (seed, len) in lens.iter().enumerate() {
            let values = |n: u32, width: usize| noise(10 * seed as u32 + n, len * width);
            sequences.push(Sequence {
                q: values(1, heads * key_dim),
                k: values(2, kv_heads * key_dim),
                v: values(3, kv_heads * value_dim),
                pages: Vec::new(),
            });
        }
        for turn in 0..total {
            for (sequence, count) in sequences.iter_mut().zip(&counts) {
                if turn < *count {
                    sequence.pages.extend(free.next());
                }
            }
        }
        // All bits set: what a row must not see is NaN.
        let value = if dtype == KvDtype::F16 { 2 } else { 4 };
        let bytes = vec![0xff; (total + 1) * page_len(shape) * value];
        let kv = bench.session.filled(&bytes, "a test").unwrap();
        let cache = Cache { shape, dtype, sequences, kv };
        let of = |(s, len): (usize, &usize)| (0..*len).map(move |p| (s, p));
        let all: Vec<_> = lens.iter().enumerate().flat_map(of).collect();
        cache.write(bench, &all);
        cache
    }

    /// Page lists, starts and positions of rows (sequence, position).
    fn places(&self, bench: &Bench, rows: &[(usize, usize)]) -> [Buffer; 3] {
        let mut starts = vec![1];
        let mut pages = vec![-1];
        for sequence in &self.sequences {
            pages.extend(&sequence.pages);
            starts.push(pages.len() as i32);
        }
        let positions: Vec<i32> = rows.iter().map(|(_, position)| *position as i32).collect();
        let of_rows: Vec<i32> = rows.iter().map(|(sequence, _)| starts[*sequence]).collect();
        [positions, of_rows, pages].map(|numbers| bench.ints(&numbers))
    }

    fn rows<'a>(&'a self, [positions, row_pages, pages]: &'a [Buffer; 3]) -> KvRows<'a> {
        KvRows {
            kv: &self.kv,
            kv_heads: self.shape[1],
            dims: HeadDims { key: self.shape[2], value: self.shape[3] },
            positions: ints(positions),
            row_pages: ints(row_pages),
            pages: ints(pages),
        }
    }

    pub(super) fn write(&self, bench: &mut Bench, rows: &[(usize, usize)]) {
        let part = |of: fn(&Sequence) -> &Vec<f32>, width: usize| {
            let row = |(s, p): &(usize, usize)| &of(&self.sequences[*s])[p * width..][..width];
            let values: Vec<f32> = rows.iter().flat_map(row).copied().collect();
            bench.guarded(&values, width)
        };
        let [_, kv_heads, key_dim, value_dim, _] = self.shape;
        let (k, v) = (part(|s| &s.k, kv_heads * key_dim), part(|s| &s.v, kv_heads * value_dim));
        let places = self.places(bench, rows);
        let to = self.rows(&places);
        let job = KvWrite { k: k.view(), v: v.view(), rows: rows.len(), to };
        bench.kernels.kv_write(&job).unwrap();
        bench.session.finish().unwrap();
    }

    pub(super) fn attend(
        &self,
        bench: &mut Bench,
        rows: &[(usize, usize)],
        mask: Rules,
    ) -> Vec<f32> {
        let [heads, _, key_dim, value_dim, _] = self.shape;
        let width = heads * key_dim;
        let row = |(s, p): &(usize, usize)| &self.sequences[*s].q[p * width..][..width];
        let q: Vec<f32> = rows.iter().flat_map(row).copied().collect();
        let (q, out) = (bench.guarded(&q, width), bench.room(rows.len(), heads * value_dim));
        let places = self.places(bench, rows);
        let sinks = mask.sinks.map(|sinks| bench.floats(&sinks[..heads]));
        let job = Attention {
            q: q.view(),
            rows: rows.len(),
            heads,
            from: self.rows(&places),
            window: mask.window,
            scale: mask.scale,
            soft_cap: mask.soft_cap,
            sinks: sinks.as_ref(),
            out: out.view(),
        };
        bench.kernels.attention(&job).unwrap();
        bench.rows(&out)
    }

    pub(super) fn wanted(&self, sequence: usize, mask: Rules) -> Vec<f64> {
        let [heads, kv_heads, key_dim, ..] = self.shape;
        let sequence = &self.sequences[sequence];
        let stored = |x: &Vec<f32>| -> Vec<f32> {
            let round = |x: &f32| if self.dtype == KvDtype::F16 { binary16::round(*x) } else { *x };
            x.iter().map(round).collect()
        };
        let of_heads =
            |sinks: &[f32]| -> Vec<f64> { sinks[..heads].iter().copied().map(f64::from).collect() };
        let sinks = mask.sinks.map(of_heads);
        let job = DenseAttention {
            q: &sequence.q,
            k: &stored(&sequence.k),
            v: &stored(&sequence.v),
            shape: (heads, kv_heads, key_dim),
            scale: f64::from(mask.scale),
            slopes: None,
            sinks: sinks.as_deref(),
            soft_cap: mask.soft_cap.map(f64::from),
        };
        let first = |row: usize| mask.window.map_or(0, |window| (row + 1).saturating_sub(window));
        reference::attention(&job, |row| (first(row)..=row).collect())
    }
}

/// What attention computes with the scores of keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) window: Option<usize>,
    pub(super) scale: f32,
    pub(super) soft_cap: Option<f32>,
    /// Those of the first heads.
    pub(super) sinks: Option<&'static [f32]>,
}
