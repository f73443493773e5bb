//! Writes rows of keys and values into their pages.

use crate::context::Cpu;
use crate::rope::Rotation;
use lapwing_model::kv::{KvElements, KvHeads, KvLayer, KvPageLayout, PageId};

/// Keys and values of some rows of one sequence.
#[derive(Clone, Copy, Debug)]
pub struct KvRows<'a> {
    /// Pages of the sequence.
    pub pages: &'a [PageId],
    /// Position of the first row.
    pub start_pos: usize,
    /// Keys: `[rows][kv_heads][key_dim]`.
    pub k: &'a [f32],
    /// Values: `[rows][kv_heads][value_dim]`.
    pub v: &'a [f32],
}

impl KvRows<'_> {
    /// Writes the rows, converted to the storage type.
    ///
    /// # Panics
    /// If `k` and `v` are not equally many whole rows, or `pages` has too few, unknown or repeated
    /// pages.
    pub fn write(self, cpu: &Cpu, layer: &mut KvLayer<'_>) {
        self.write_rotated(cpu, layer, None);
    }

    /// As [`write`](KvRows::write), with rotary embedding applied to the keys.
    ///
    /// # Panics
    /// As [`write`](KvRows::write), or if keys are rotated and heads have more than
    /// [`ROTARY_DIM_MAX`] values.
    pub(crate) fn write_rotated(
        self,
        cpu: &Cpu,
        layer: &mut KvLayer<'_>,
        rotation: Option<Rotation<'_>>,
    ) {
        let KvRows { start_pos, k, v, .. } = self;
        let layout = *layer.layout();
        let (page_rows, heads) = (layout.page_rows, layout.heads);
        let (key_width, value_width) = (heads.key_width(), heads.value_width());
        let rows = k.len() / key_width;
        assert!(
            k.len() == rows * key_width && v.len() == rows * value_width,
            "k and v are not equally many whole rows"
        );
        if k.is_empty() {
            return;
        }
        let end_pos = start_pos + rows;
        let first = start_pos / page_rows;
        let pages = &self.pages[first..end_pos.div_ceil(page_rows)];
        for page in pages {
            assert!((*page as usize) < layer.pages(), "KV page {page} of {}", layer.pages());
        }
        let rows = |i: usize| {
            let page_start = (first + i) * page_rows;
            let from = page_start.max(start_pos);
            let to = (page_start + page_rows).min(end_pos);
            let (first, end) = (from - start_pos, to - start_pos);
            let k = &k[first * key_width..end * key_width];
            let v = &v[first * value_width..end * value_width];
            let rotation = rotation.map(|rotation| (cpu, rotation, first));
            PageRows { layout, at: from - page_start, k, v, rotation }
        };
        let (pool, len) = (cpu.pool(), layer.page_len());
        let f32_to_f16 = cpu.kernels().f32_to_f16;
        match layer.elements_mut() {
            KvElements::F32(data) => pool.picks_mut(data, len, pages, |i, page| {
                rows(i).put(page, |x, to| to.copy_from_slice(x));
            }),
            KvElements::F16(data) => {
                pool.picks_mut(data, len, pages, |i, page| rows(i).put(page, f32_to_f16));
            }
            KvElements::I8(data) => {
                pool.picks_mut(data, len, pages, |i, page| rows(i).put_quantized(page));
            }
        }
    }
}

/// Largest number of values per head for which keys are rotated while they are written.
pub(crate) const ROTARY_DIM_MAX: usize = 256;

/// Rows to write into one page.
struct PageRows<'a> {
    layout: KvPageLayout,
    /// First row within the page.
    at: usize,
    /// `[rows][kv_heads][key_dim]`.
    k: &'a [f32],
    /// `[rows][kv_heads][value_dim]`.
    v: &'a [f32],
    /// Rotation of the keys, if any, and the index of the first row in it.
    rotation: Option<(&'a Cpu, Rotation<'a>, usize)>,
}

impl PageRows<'_> {
    /// Calls `f(head, row within the page, keys, values)` for each head of each row.
    fn each(&self, mut f: impl FnMut(usize, usize, &[f32], &[f32])) {
        let KvHeads { count, key_dim, value_dim } = self.layout.heads;
        let lines = self.k.chunks_exact(key_dim).zip(self.v.chunks_exact(value_dim));
        let mut rotated = [0.0; ROTARY_DIM_MAX];
        for (i, (k, v)) in lines.enumerate() {
            let (head, row) = (i % count, i / count);
            let Some((cpu, rotation, first)) = &self.rotation else {
                f(head, self.at + row, k, v);
                continue;
            };
            let rotated = &mut rotated[..key_dim];
            rotation.heads(cpu, first + row, k, rotated);
            f(head, self.at + row, rotated, v);
        }
    }

    /// Writes the rows with `convert` applied to the elements.
    fn put<T: Copy + Default>(&self, page: &mut [T], convert: impl Fn(&[f32], &mut [T])) {
        let KvPageLayout { heads: KvHeads { key_dim, value_dim, .. }, page_rows, .. } = self.layout;
        let (keys, values) = page.split_at_mut(self.layout.keys_len());
        self.each(|head, row, k, v| {
            let keys = &mut keys[head * key_dim * page_rows..][..key_dim * page_rows];
            let mut part = [T::default(); 64];
            for (j, k) in k.chunks(64).enumerate() {
                let part = &mut part[..k.len()];
                convert(k, part);
                let lines = keys[j * 64 * page_rows..].chunks_exact_mut(page_rows);
                lines.zip(part).for_each(|(line, k)| line[row] = *k);
            }
            convert(v, &mut values[(head * page_rows + row) * value_dim..][..value_dim]);
        });
    }

    /// Writes the rows as [`KvDtype::I8`](lapwing_model::kv::KvDtype::I8), with their scales.
    fn put_quantized(&self, page: &mut [i8]) {
        let KvPageLayout { heads: KvHeads { key_dim, value_dim, .. }, page_rows, .. } = self.layout;
        let (keys, rest) = page.split_at_mut(self.layout.keys_len());
        let (values, scales) = rest.split_at_mut(self.layout.values_len());
        let (key_scales, value_scales) = scales.split_at_mut(self.layout.scale_bytes());
        self.each(|head, row, k, v| {
            let at = (head * page_rows + row) * size_of::<f32>();
            let (scale, inverse) = scale_for(k);
            key_scales[at..][..4].copy_from_slice(&bytes_of(scale));
            let lines = keys[head * key_dim * page_rows..].chunks_exact_mut(page_rows);
            lines.zip(k).for_each(|(line, k)| line[row] = round(*k * inverse));
            let (scale, inverse) = scale_for(v);
            value_scales[at..][..4].copy_from_slice(&bytes_of(scale));
            let to = &mut values[(head * page_rows + row) * value_dim..][..value_dim];
            to.iter_mut().zip(v).for_each(|(to, v)| *to = round(*v * inverse));
        });
    }
}

fn bytes_of(scale: f32) -> [i8; 4] {
    scale.to_ne_bytes().map(u8::cast_signed)
}

/// Scale of a row of one head, and its inverse.
fn scale_for(x: &[f32]) -> (f32, f32) {
    let (lines, tail) = x.as_chunks::<16>();
    let mut lanes = [0.0f32; 16];
    for line in lines {
        for (lane, x) in lanes.iter_mut().zip(line) {
            *lane = if x.abs() > *lane { x.abs() } else { *lane };
        }
    }
    let highest = lanes.iter().chain(tail).fold(0.0f32, |m, x| m.max(x.abs()));
    (highest / 127.0, if highest == 0.0 { 0.0 } else { 127.0 / highest })
}

/// Nearest integer, ties to even, for |x| ≤ 127. Adding 1.5 · 2²³ leaves the integer in the low bits;
/// unlike a call to round, compilers vectorise this for every instruction set.
fn round(x: f32) -> i8 {
    (x + 12_582_912.0).to_bits() as i8
}
