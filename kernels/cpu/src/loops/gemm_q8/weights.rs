//! Sources of the weights that a register block multiplies: an unpacked panel, or a tile.

use super::dot::{ActRows, Int8Dot};
use crate::loops::formats::Format;
use crate::packed::group::Group;
use crate::packed::layout::TILE;
use crate::packed::tile::TileBytes;
use crate::simd::f32x16::F32x16;
use lapwing_model::formats::Scales;
use lapwing_model::formats::block::{minifloat, power};
use std::marker::PhantomData;

/// The weights of one group.
///
/// # Safety
/// Every method: the machine has the instructions of `D`.
pub(super) trait GroupWeights<D: Int8Dot, F: Format> {
    /// As [`Int8Dot::dot`].
    ///
    /// # Safety
    /// As the trait says, and there are R rows.
    unsafe fn dot<const R: usize, const FROM: usize, const TO: usize>(
        &self,
        x: ActRows,
    ) -> [D::Sums; R];

    /// Scales of the group, or of one of its halves.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn scale(&self, half: usize) -> D::Floats;

    /// Minimums of the group, or of one of its halves.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn min(&self, half: usize) -> D::Floats;
}

/// A source of the groups of a tile.
pub(super) trait GroupSource<D: Int8Dot, F: Format> {
    /// Fewest rows of a block with this source.
    const ROWS_MIN: usize = 1;

    /// Group `g`.
    ///
    /// # Safety
    /// The machine has the instructions of `D`, and the tile has the group.
    unsafe fn group(&mut self, g: usize) -> impl GroupWeights<D, F>;
}

/// A panel that is unpacked already.
pub(super) struct UnpackedGroups<'a>(pub(super) &'a [Group]);

impl<D: Int8Dot, F: Format> GroupSource<D, F> for UnpackedGroups<'_> {
    #[inline(always)]
    unsafe fn group(&mut self, g: usize) -> impl GroupWeights<D, F> {
        &self.0[g]
    }
}

impl<D: Int8Dot, F: Format> GroupWeights<D, F> for &Group {
    #[inline(always)]
    unsafe fn dot<const R: usize, const FROM: usize, const TO: usize>(
        &self,
        x: ActRows,
    ) -> [D::Sums; R] {
        // SAFETY: by the caller.
        unsafe { D::dot::<F, R, FROM, TO>(self, x) }
    }
    #[inline(always)]
    unsafe fn scale(&self, half: usize) -> D::Floats {
        // SAFETY: by the caller; a scale has 16 values.
        unsafe { D::Floats::load(self.scale[half].as_ptr()) }
    }
    #[inline(always)]
    unsafe fn min(&self, half: usize) -> D::Floats {
        // SAFETY: by the caller; a minimum has 16 values.
        unsafe { D::Floats::load(self.min[half].as_ptr()) }
    }
}

/// A tile whose groups are unpacked when they are read.
pub(super) struct StoredGroups<'a, D, F> {
    tile: TileBytes<'a>,
    group: Group,
    kind: PhantomData<(D, F)>,
}

impl<'a, D: Int8Dot, F: Format> StoredGroups<'a, D, F> {
    pub(super) fn new(tile: TileBytes<'a>) -> StoredGroups<'a, D, F> {
        StoredGroups { tile, group: Group::new(), kind: PhantomData }
    }
}

/// A group of a tile.
struct StoredGroup<'a, D: Int8Dot> {
    tile: &'a TileBytes<'a>,
    g: usize,
    group: &'a Group,
    factors: GroupScales<D::Floats>,
}

impl<D: Int8Dot, F: Format> GroupSource<D, F> for StoredGroups<'_, D, F> {
    #[inline(always)]
    unsafe fn group(&mut self, g: usize) -> impl GroupWeights<D, F> {
        let StoredGroups { tile, group, .. } = self;
        // SAFETY: by the caller.
        unsafe {
            D::prepare::<F>(tile, g, group);
            StoredGroup::<D> { tile, g, group, factors: factors::<D, F>(tile, g) }
        }
    }
}

impl<D: Int8Dot, F: Format> GroupWeights<D, F> for StoredGroup<'_, D> {
    #[inline(always)]
    unsafe fn dot<const R: usize, const FROM: usize, const TO: usize>(
        &self,
        x: ActRows,
    ) -> [D::Sums; R] {
        // SAFETY: by the caller.
        unsafe { D::dot_stored::<F, R, FROM, TO>(self.tile, self.g, self.group, x) }
    }
    #[inline(always)]
    unsafe fn scale(&self, half: usize) -> D::Floats {
        self.factors.scale[half]
    }
    #[inline(always)]
    unsafe fn min(&self, half: usize) -> D::Floats {
        self.factors.min[half]
    }
}

/// A panel of a tile whose groups are unpacked when they are read, and kept for other rows.
pub(super) struct KeptGroups<'a, D, F> {
    tile: TileBytes<'a>,
    /// The tile's group that is the panel's first.
    first: usize,
    panel: &'a mut [Group],
    kind: PhantomData<(D, F)>,
}

impl<'a, D: Int8Dot, F: Format> KeptGroups<'a, D, F> {
    /// Fills `panel` with the tile's groups from `first` on.
    pub(super) fn new(
        tile: TileBytes<'a>,
        first: usize,
        panel: &'a mut [Group],
    ) -> KeptGroups<'a, D, F> {
        KeptGroups { tile, first, panel, kind: PhantomData }
    }
}

/// A group of a tile that is kept in a panel.
struct KeptGroup<'a, D: Int8Dot> {
    tile: &'a TileBytes<'a>,
    g: usize,
    to: *mut Group,
    factors: GroupScales<D::Floats>,
}

impl<D: Int8Dot, F: Format> GroupSource<D, F> for KeptGroups<'_, D, F> {
    /// The first of several blocks of about equal size.
    const ROWS_MIN: usize = D::ROWS.div_ceil(2);

    #[inline(always)]
    unsafe fn group(&mut self, g: usize) -> impl GroupWeights<D, F> {
        let KeptGroups { tile, first, panel, .. } = self;
        let (to, g) = (&mut panel[g], *first + g);
        // SAFETY: by the caller.
        unsafe {
            D::prepare_kept::<F>(tile, g, to);
            let factors = factors::<D, F>(tile, g);
            factors.keep::<F>(to);
            KeptGroup::<D> { tile, g, to, factors }
        }
    }
}

impl<D: Int8Dot, F: Format> GroupWeights<D, F> for KeptGroup<'_, D> {
    #[inline(always)]
    unsafe fn dot<const R: usize, const FROM: usize, const TO: usize>(
        &self,
        x: ActRows,
    ) -> [D::Sums; R] {
        // SAFETY: by the caller; the panel is borrowed exclusively.
        unsafe { D::dot_kept::<F, R, FROM, TO>(self.tile, self.g, self.to, x) }
    }
    #[inline(always)]
    unsafe fn scale(&self, half: usize) -> D::Floats {
        self.factors.scale[half]
    }
    #[inline(always)]
    unsafe fn min(&self, half: usize) -> D::Floats {
        self.factors.min[half]
    }
}

/// Scales and minimums of a group, each of which may have another for its last half; 0 if the format has none.
#[derive(Clone, Copy)]
struct GroupScales<V> {
    scale: [V; 2],
    min: [V; 2],
}

impl<V: F32x16> GroupScales<V> {
    /// Stores those that the format has.
    ///
    /// # Safety
    /// As [`F32x16`] demands.
    #[inline(always)]
    unsafe fn keep<F: Format>(self, to: &mut Group) {
        // SAFETY: by the caller; scales and minimums have 16 values.
        unsafe {
            self.scale[0].store(to.scale[0].as_mut_ptr());
            if F::HALVES {
                self.scale[1].store(to.scale[1].as_mut_ptr());
            }
            if F::MIN {
                self.min[0].store(to.min[0].as_mut_ptr());
            }
            if F::MIN && F::HALVES {
                self.min[1].store(to.min[1].as_mut_ptr());
            }
        }
    }
}

/// Loads the scales and minimums of group `g`.
///
/// # Safety
/// The machine has the instructions of `D`.
///
/// # Panics
/// When the tile has no such group.
#[inline(always)]
unsafe fn factors<D: Int8Dot, F: Format>(tile: &TileBytes<'_>, g: usize) -> GroupScales<D::Floats> {
    let from = &tile.scales[g / F::GROUPS * F::SCALE_BYTES..][..F::SCALE_BYTES];
    let i = g % F::GROUPS;
    // SAFETY: by the caller; the slices have 16 values from there on, or it panics.
    unsafe {
        let half = |at: usize| D::Floats::load_f16(from[at..][..2 * TILE].as_ptr().cast());
        let bytes = |at: usize| D::Floats::load_i8(from[at * TILE..][..TILE].as_ptr().cast());
        let none = D::Floats::splat(0.0);
        let of_group = |scale, min| GroupScales { scale: [scale, none], min: [min, none] };
        let minus = |d: D::Floats| d.mul(D::Floats::splat(-1.0));
        let units =
            |d: D::Floats| if F::UNIT == 1.0 { d } else { d.mul(D::Floats::splat(F::UNIT)) };
        match F::SCALES {
            Scales::None => of_group(none, none),
            Scales::Plain => of_group(half(0), none),
            Scales::Minimum => of_group(half(0), half(2 * TILE)),
            // Scales have at most 6 bits, so signed and unsigned bytes are the same.
            Scales::Super => {
                of_group(half(0).mul(bytes(4 + i)), minus(half(2 * TILE).mul(bytes(12 + i))))
            }
            Scales::Halves => {
                let d = units(half(16 * TILE));
                let scale = [d.mul(bytes(2 * i)), d.mul(bytes(2 * i + 1))];
                GroupScales { scale, min: [none; 2] }
            }
            Scales::SuperHalves => {
                let (d, m) = (half(0), minus(half(2 * TILE)));
                let factors = &from[(4 + 2 * i) * TILE..][..2 * TILE];
                let first = D::Floats::load_nibbles(factors.as_ptr());
                let last = D::Floats::load_nibbles(factors[TILE..].as_ptr());
                GroupScales {
                    scale: [d.mul(first[0]), d.mul(last[0])],
                    min: [m.mul(first[1]), m.mul(last[1])],
                }
            }
            Scales::Signed => of_group(units(half(8 * TILE)).mul(bytes(i)), none),
            Scales::Power => {
                let powers: [f32; TILE] = std::array::from_fn(|i| power(from[i]));
                of_group(D::Floats::load(powers.as_ptr()), none)
            }
            Scales::Minifloats => {
                let scale = [0, TILE].map(|at| {
                    let values: [f32; TILE] = std::array::from_fn(|i| minifloat(from[at + i]));
                    D::Floats::load(values.as_ptr())
                });
                GroupScales { scale, min: [none; 2] }
            }
        }
    }
}
