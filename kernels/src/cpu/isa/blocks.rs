//! Products of quantised weights in blocks of a few rows × 16 features, for instruction sets
//! whose registers are too few or too short for the blocks of AVX-512. They differ in how they
//! sum products of bytes ([`Dots`]); all else is written once.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::cpu::ahead::Ahead;
use crate::cpu::isa::TileShape;
use crate::cpu::isa::floats;
use crate::cpu::isa::formats::{Format, ask};
use crate::cpu::isa::lanes::Lanes;
use crate::cpu::packed::{Group, Scales, TileBytes};
use crate::cpu::tile::{ActBlock, KernelScratch, QuantJob, TILE};
use std::ops::Range;

/// Most rows of a block, on any instruction set.
pub(crate) const ROWS_MAX: usize = 4;

/// How an instruction set sums products of bytes.
///
/// # Safety
/// Every method: the machine has the instructions of the implementing type.
pub(crate) trait Dots {
    /// 16 values of f32.
    type Floats: Lanes;
    /// Sums of 16 features.
    type Sums: Copy;
    /// Rows of a block, at most [`ROWS_MAX`].
    const ROWS: usize;

    /// Brings the integers of a group into the order that [`Dots::dots`] wants.
    ///
    /// # Safety
    /// As the trait says.
    #[inline(always)]
    unsafe fn arrange<F: Format>(_: &mut Group) {}

    /// `start + Σ q·x` over the quads `FROM .. TO`, which are a whole group or half of one, for R
    /// rows; exact for x within ±127, whatever q is. `start` is [`ActBlock::start`] for formats with an offset,
    /// otherwise 0.
    ///
    /// # Safety
    /// As the trait says, and there are R rows.
    unsafe fn dots<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        group: &Group,
        x: Rows,
    ) -> [Self::Sums; R];

    /// # Safety
    /// As the trait says.
    unsafe fn floats(sums: Self::Sums) -> Self::Floats;

    /// Asks for the line at an address that need not exist.
    #[inline(always)]
    fn prefetch(_: *const u8) {}
}

/// The register blocks of these products, and of float weights beside them.
pub(crate) const fn shape<D: Dots>() -> TileShape {
    TileShape {
        direct_rows: D::ROWS,
        rows: D::ROWS,
        tiles: 1,
        panel_group_bytes: size_of::<Group>(),
        float_rows: floats::ROWS,
        float_tiles: 1,
    }
}

/// The activation blocks of one group, of rows that are some blocks apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    first: *const ActBlock,
    stride: usize,
}

impl Rows {
    /// # Safety
    /// There is a row `r`.
    #[inline(always)]
    pub(crate) unsafe fn block<'a>(self, r: usize) -> &'a ActBlock {
        // SAFETY: by the caller.
        unsafe { &*self.first.add(r * self.stride) }
    }

    /// Four values side by side.
    ///
    /// # Safety
    /// There is a row `r`, and `j` is less than 8.
    #[inline(always)]
    pub(crate) unsafe fn quad(self, r: usize, j: usize) -> i32 {
        // SAFETY: by the caller; a block starts with its values and has 8 quads of them.
        unsafe { self.first.add(r * self.stride).cast::<i32>().add(j).read() }
    }
}

/// Where the unpacked groups of a tile come from.
trait Source {
    /// # Safety
    /// The machine has the instructions, and the tile has the group.
    unsafe fn group(&mut self, g: usize) -> &Group;
}

/// All groups, unpacked before.
struct Unpacked<'a>(&'a [Group]);

impl Source for Unpacked<'_> {
    #[inline(always)]
    unsafe fn group(&mut self, g: usize) -> &Group {
        &self.0[g]
    }
}

/// Each group is unpacked when it is wanted.
struct Stored<'a, D, F> {
    tile: TileBytes<'a>,
    ahead: Ahead,
    group: Group,
    kind: std::marker::PhantomData<(D, F)>,
}

impl<D: Dots, F: Format> Source for Stored<'_, D, F> {
    #[inline(always)]
    unsafe fn group(&mut self, g: usize) -> &Group {
        ask::<F>(self.ahead, self.tile.values.as_ptr(), g, D::prefetch);
        // SAFETY: by the caller.
        unsafe { unpack::<D, F>(&self.tile, g, &mut self.group) };
        &self.group
    }
}

/// All of a job: one block of up to [`Dots::ROWS`] rows unpacks as it goes; more rows share panels
/// that are unpacked once. The sums of earlier panels wait in `out`.
///
/// # Safety
/// The machine has the instructions of `D`, and lengths are as [`QuantJob::check`] demands.
///
/// # Panics
/// When the weights have another format.
#[inline(always)]
pub(crate) unsafe fn tiles<D: Dots, F: Format>(
    job: &QuantJob<'_>,
    out: &mut [f32],
    scratch: &mut KernelScratch,
) {
    let layout = job.weight.layout();
    assert!(layout.lines == F::LINES && layout.kind == F::SCALES, "another format");
    let (groups, stride) = (layout.groups(), job.tiles.len() * TILE);
    // Blocks of about the same size: one of few rows would wait for its own sums.
    let step = job.rows.div_ceil(job.rows.div_ceil(D::ROWS));
    let ahead = job.ahead(F::SHARE);
    for (t, tile) in job.tiles.clone().enumerate() {
        let tile = job.weight.tile(tile);
        let block = |row: usize, groups_of: Range<usize>| Block {
            x: job.x[row * groups + groups_of.start..].as_ptr(),
            row_groups: groups,
            is_first: groups_of.start == 0,
            groups: groups_of.len(),
            rows: step.min(job.rows - row),
            stride,
        };
        if job.rows <= D::ROWS {
            let (group, kind) = (Group::new(), std::marker::PhantomData);
            let source = Stored::<D, F> { tile, ahead, group, kind };
            // SAFETY: the tile has `groups` groups; `x` has the rows of the block; row r has 16
            // values at `out + r·stride`.
            unsafe { block(0, 0..groups).of::<D, F, _>(source, &mut out[t * TILE..]) };
            continue;
        }
        for from in (0..groups).step_by(job.panel) {
            let panel_groups = from..groups.min(from + job.panel);
            scratch.groups.resize(panel_groups.len(), Group::new());
            for (g, group) in panel_groups.clone().zip(&mut scratch.groups) {
                // SAFETY: by the caller.
                unsafe { unpack::<D, F>(&tile, g, group) };
            }
            for row in (0..job.rows).step_by(step) {
                let out = &mut out[row * stride + t * TILE..];
                let source = Unpacked(&scratch.groups);
                // SAFETY: as above; the panel has these groups.
                unsafe { block(row, panel_groups.clone()).of::<D, F, _>(source, out) };
            }
        }
    }
}

/// Unpacks one group.
///
/// # Safety
/// As [`Dots`] says.
#[inline(always)]
unsafe fn unpack<D: Dots, F: Format>(tile: &TileBytes<'_>, g: usize, to: &mut Group) {
    to.read_values(tile, g);
    let from = &tile.scales[g / F::GROUPS * F::SCALES.bytes()..][..F::SCALES.bytes()];
    let i = g % F::GROUPS;
    // SAFETY: by the caller; the slices have 16 values from there on, or it panics.
    unsafe {
        D::arrange::<F>(to);
        let half = |at: usize| D::Floats::load_f16(from[at..][..2 * TILE].as_ptr().cast());
        let bytes = |at: usize| D::Floats::load_i8(from[at * TILE..][..TILE].as_ptr().cast());
        match F::SCALES {
            Scales::None => {}
            Scales::Plain => half(0).store(to.scale[0].as_mut_ptr()),
            Scales::Minimum => {
                half(0).store(to.scale[0].as_mut_ptr());
                half(2 * TILE).store(to.min.as_mut_ptr());
            }
            // 6 bits, which as signed bytes are the same.
            Scales::Super => {
                half(0).mul(bytes(4 + i)).store(to.scale[0].as_mut_ptr());
                let min = half(2 * TILE).mul(bytes(12 + i));
                min.mul(D::Floats::splat(-1.0)).store(to.min.as_mut_ptr());
            }
            Scales::Halves => {
                let d = half(16 * TILE);
                for (h, scale) in to.scale.iter_mut().enumerate() {
                    d.mul(bytes(2 * i + h)).store(scale.as_mut_ptr());
                }
            }
        }
    }
}

/// Some rows times a tile.
struct Block {
    x: *const ActBlock,
    /// Distance of rows in the activations.
    row_groups: usize,
    /// Whether nothing was summed before.
    is_first: bool,
    groups: usize,
    rows: usize,
    /// Distance of rows in the output.
    stride: usize,
}

impl Block {
    /// # Safety
    /// The machine has the instructions of `D`; there are `rows` rows of `groups` blocks at `x`,
    /// `row_groups` apart; the source has `groups` groups, from a multiple of 8 on, and all of them
    /// or a multiple of 8 unless they are the last.
    #[inline(always)]
    unsafe fn of<D: Dots, F: Format, S: Source>(&self, source: S, out: &mut [f32]) {
        const { assert!(D::ROWS <= ROWS_MAX) };
        assert!(out.len() >= (self.rows - 1) * self.stride + TILE, "out is too short");
        let to = out.as_mut_ptr();
        // SAFETY: by the caller, and there are 16 values for each row.
        unsafe {
            match self.rows {
                1 => self.rows::<D, F, S, 1>(source, to),
                2 => self.rows::<D, F, S, 2>(source, to),
                3 => self.rows::<D, F, S, 3>(source, to),
                4 => self.rows::<D, F, S, 4>(source, to),
                rows => unreachable!("{rows} rows are several blocks"),
            }
        }
    }

    /// # Safety
    /// As [`Block::of`] for R rows, with 16 values at R multiples of `stride` from `out`.
    #[inline(always)]
    unsafe fn rows<D: Dots, F: Format, S: Source, const R: usize>(
        &self,
        mut source: S,
        out: *mut f32,
    ) {
        if R > D::ROWS {
            unreachable!("{R} rows are several blocks");
        }
        // SAFETY: by the caller.
        unsafe {
            let mut partial = [D::Floats::splat(0.0); R];
            let mut acc = partial;
            if !self.is_first {
                for (r, acc) in acc.iter_mut().enumerate() {
                    *acc = D::Floats::load(out.add(r * self.stride));
                }
            }
            for g in 0..self.groups {
                let w = source.group(g);
                let x = Rows { first: self.x.add(g), stride: self.row_groups };
                if F::GROUPS == 1 {
                    add::<D, F, R>(w, x, &mut acc);
                    continue;
                }
                add::<D, F, R>(w, x, &mut partial);
                if g % 8 == 7 {
                    for r in 0..R {
                        acc[r] = partial[r].fma(D::Floats::splat(x.block(r).d), acc[r]);
                        partial[r] = D::Floats::splat(0.0);
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                acc.store(out.add(r * self.stride));
            }
        }
    }
}

/// Adds one group: `sum += scale·d·(start + Σ q·x)`, then `sum += min·s`; d is 1 where
/// super-blocks are multiplied with theirs later.
///
/// # Safety
/// As [`Dots`] says, and there are R rows.
#[inline(always)]
unsafe fn add<D: Dots, F: Format, const R: usize>(w: &Group, x: Rows, sum: &mut [D::Floats; R]) {
    // SAFETY: by the caller; a scale and a minimum have 16 values.
    unsafe {
        if F::HALVES {
            let scale = D::Floats::load(w.scale[0].as_ptr());
            let dots = D::dots::<F, R, 0, 4>(w, x);
            for r in 0..R {
                sum[r] = D::floats(dots[r]).fma(scale, sum[r]);
            }
            let scale = D::Floats::load(w.scale[1].as_ptr());
            let dots = D::dots::<F, R, 4, 8>(w, x);
            for r in 0..R {
                sum[r] = D::floats(dots[r]).fma(scale, sum[r]);
            }
            return;
        }
        let dots = D::dots::<F, R, 0, 8>(w, x);
        for r in 0..R {
            let mut scale = D::Floats::load(w.scale[0].as_ptr());
            if F::GROUPS == 1 {
                scale = scale.mul(D::Floats::splat(x.block(r).d));
            }
            sum[r] = D::floats(dots[r]).fma(scale, sum[r]);
            if F::MIN {
                let min = D::Floats::load(w.min.as_ptr());
                sum[r] = min.fma(D::Floats::splat(x.block(r).s), sum[r]);
            }
        }
    }
}
