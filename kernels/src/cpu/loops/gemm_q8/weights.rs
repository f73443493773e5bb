//! The groups of a tile, as a block of rows multiplies them.

use super::dot::{ActRows, Int8Dot, read};
use crate::cpu::loops::formats::{Format, prefetch_group};
use crate::cpu::loops::prefetch_stream::PrefetchStream;
use crate::cpu::packed::group::Group;
use crate::cpu::packed::layout::Scales;
use crate::cpu::packed::layout::TILE;
use crate::cpu::packed::tile::TileBytes;
use crate::cpu::simd::f32x16::F32x16;
use std::marker::PhantomData;

/// One group.
///
/// # Safety
/// Every method: the machine has the instructions of `D`.
pub(super) trait Weights<D: Int8Dot, F: Format> {
    /// As [`Int8Dot::dots`].
    ///
    /// # Safety
    /// As the trait says, and there are R rows.
    unsafe fn dots<const R: usize, const FROM: usize, const TO: usize>(
        &self,
        x: ActRows,
    ) -> [D::Sums; R];

    /// Of the group, or of one of its halves.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn scale(&self, half: usize) -> D::Floats;

    /// # Safety
    /// As the trait says.
    unsafe fn min(&self) -> D::Floats;
}

/// Where the groups of a tile come from.
pub(super) trait Source<D: Int8Dot, F: Format> {
    /// # Safety
    /// The machine has the instructions of `D`, and the tile has the group.
    unsafe fn group(&mut self, g: usize) -> impl Weights<D, F>;
}

/// All groups, unpacked before.
pub(super) struct Unpacked<'a>(pub(super) &'a [Group]);

impl<D: Int8Dot, F: Format> Source<D, F> for Unpacked<'_> {
    #[inline(always)]
    unsafe fn group(&mut self, g: usize) -> impl Weights<D, F> {
        &self.0[g]
    }
}

impl<D: Int8Dot, F: Format> Weights<D, F> for &Group {
    #[inline(always)]
    unsafe fn dots<const R: usize, const FROM: usize, const TO: usize>(
        &self,
        x: ActRows,
    ) -> [D::Sums; R] {
        // SAFETY: by the caller.
        unsafe { D::dots::<F, R, FROM, TO>(self, x) }
    }
    #[inline(always)]
    unsafe fn scale(&self, half: usize) -> D::Floats {
        // SAFETY: by the caller; a scale has 16 values.
        unsafe { D::Floats::load(self.scale[half].as_ptr()) }
    }
    #[inline(always)]
    unsafe fn min(&self) -> D::Floats {
        // SAFETY: by the caller; a minimum has 16 values.
        unsafe { D::Floats::load(self.min.as_ptr()) }
    }
}

/// Each group is made ready when it is wanted.
pub(super) struct Stored<'a, D, F> {
    tile: TileBytes<'a>,
    ahead: PrefetchStream,
    group: Group,
    kind: PhantomData<(D, F)>,
}

impl<'a, D: Int8Dot, F: Format> Stored<'a, D, F> {
    pub(super) fn new(tile: TileBytes<'a>, ahead: PrefetchStream) -> Stored<'a, D, F> {
        Stored { tile, ahead, group: Group::new(), kind: PhantomData }
    }
}

/// A group of a tile, made ready.
struct OfTile<'a, D: Int8Dot> {
    tile: &'a TileBytes<'a>,
    g: usize,
    group: &'a Group,
    factors: GroupScales<D::Floats>,
}

impl<D: Int8Dot, F: Format> Source<D, F> for Stored<'_, D, F> {
    #[inline(always)]
    unsafe fn group(&mut self, g: usize) -> impl Weights<D, F> {
        let Stored { tile, ahead, group, .. } = self;
        prefetch_group::<F>(*ahead, tile.values.as_ptr(), g);
        // SAFETY: by the caller.
        unsafe {
            D::ready::<F>(tile, g, group);
            OfTile::<D> { tile, g, group, factors: factors::<D, F>(tile, g) }
        }
    }
}

impl<D: Int8Dot, F: Format> Weights<D, F> for OfTile<'_, D> {
    #[inline(always)]
    unsafe fn dots<const R: usize, const FROM: usize, const TO: usize>(
        &self,
        x: ActRows,
    ) -> [D::Sums; R] {
        // SAFETY: by the caller.
        unsafe { D::stored::<F, R, FROM, TO>((self.tile, self.g, self.group), x) }
    }
    #[inline(always)]
    unsafe fn scale(&self, half: usize) -> D::Floats {
        self.factors.scale[half]
    }
    #[inline(always)]
    unsafe fn min(&self) -> D::Floats {
        self.factors.min
    }
}

/// Scales of a group, the second that of its last half, and minimums. What a format has not is 0.
#[derive(Clone, Copy)]
struct GroupScales<V> {
    scale: [V; 2],
    min: V,
}

/// # Safety
/// The machine has the instructions of `D`.
///
/// # Panics
/// When the tile has no such group.
#[inline(always)]
unsafe fn factors<D: Int8Dot, F: Format>(tile: &TileBytes<'_>, g: usize) -> GroupScales<D::Floats> {
    let from = &tile.scales[g / F::GROUPS * F::SCALES.bytes()..][..F::SCALES.bytes()];
    let i = g % F::GROUPS;
    // SAFETY: by the caller; the slices have 16 values from there on, or it panics.
    unsafe {
        let half = |at: usize| D::Floats::load_f16(from[at..][..2 * TILE].as_ptr().cast());
        let bytes = |at: usize| D::Floats::load_i8(from[at * TILE..][..TILE].as_ptr().cast());
        let none = D::Floats::splat(0.0);
        match F::SCALES {
            Scales::None => GroupScales { scale: [none; 2], min: none },
            Scales::Plain => GroupScales { scale: [half(0), none], min: none },
            Scales::Minimum => GroupScales { scale: [half(0), none], min: half(2 * TILE) },
            // 6 bits, which as signed bytes are the same.
            Scales::Super => {
                let min = half(2 * TILE).mul(bytes(12 + i)).mul(D::Floats::splat(-1.0));
                GroupScales { scale: [half(0).mul(bytes(4 + i)), none], min }
            }
            Scales::Halves => {
                let d = half(16 * TILE);
                GroupScales { scale: [d.mul(bytes(2 * i)), d.mul(bytes(2 * i + 1))], min: none }
            }
        }
    }
}

/// Unpacks one group.
///
/// # Safety
/// As [`Int8Dot`] says.
///
/// # Panics
/// When the tile has no such group.
#[inline(always)]
pub(super) unsafe fn unpack<D: Int8Dot, F: Format>(tile: &TileBytes<'_>, g: usize, to: &mut Group) {
    // SAFETY: by the caller; scales and minimums have 16 values.
    unsafe {
        read::<D, F>(tile, g, to);
        let GroupScales { scale, min } = factors::<D, F>(tile, g);
        scale[0].store(to.scale[0].as_mut_ptr());
        if F::HALVES {
            scale[1].store(to.scale[1].as_mut_ptr());
        }
        if F::MIN {
            min.store(to.min.as_mut_ptr());
        }
    }
}
