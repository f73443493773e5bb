//! The kernels of matmuls, and how much each of them computes.

use crate::pack::PANEL;

/// A kernel of a matmul: its name, and how many rows and panels an item computes, or a work-group where
/// its items share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    pub(super) panels: usize,
    /// Most segments that a group can sum.
    pub(super) slices: usize,
}

/// Kernels for few rows, the most rows first.
pub(super) const FEW: [Variant; 3] = [
    Variant { name: "matmul_4", rows: 4, panels: 2, slices: 1 },
    Variant { name: "matmul_2", rows: 2, panels: 2, slices: 1 },
    Variant { name: "matmul_1", rows: 1, panels: 2, slices: 1 },
];

/// Kernels for few rows whose work-groups share a panel, the fewest rows first, and of those with the same
/// rows the smaller groups.
pub(super) fn few_in_groups(slices: usize) -> [Variant; 8] {
    let few = |name, rows, slices| Variant { name, rows, panels: 1, slices };
    [
        few("gemv_group_1_half", 1, slices / 2),
        few("gemv_group_1", 1, slices),
        few("gemv_group_2_half", 2, slices / 2),
        few("gemv_group_2", 2, slices),
        few("gemv_group_4_half", 4, slices / 2),
        few("gemv_group_4", 4, slices),
        few("gemv_group_8_half", 8, slices / 2),
        few("gemv_group_8", 8, slices),
    ]
}

/// Kernels for few rows whose work-groups share a panel of gates and one of ups, the fewest rows first.
pub(super) fn gates_in_groups(slices: usize) -> [Variant; 4] {
    let few = |name, rows| Variant { name, rows, panels: 2, slices };
    [few("gemv_gate_1", 1), few("gemv_gate_2", 2), few("gemv_gate_4", 4), few("gemv_gate_8", 8)]
}

/// Rows that the kernels for many rows on CPU devices multiply together. How many are fastest depends on
/// the vector registers and on the driver's compiler.
pub(super) const TILE_STEPS: [usize; 4] = [4, 6, 8, 12];

/// Rows of an item of those kernels: a multiple of each step.
pub(super) const TILE_ROWS: usize = 48;

/// The kernel for many rows on CPU devices that multiplies `step` rows together.
pub(super) fn tile(step: usize) -> Variant {
    let name = match step {
        4 => "matmul_tile_4",
        6 => "matmul_tile_6",
        8 => "matmul_tile_8",
        _ => "matmul_tile_12",
    };
    Variant { name, rows: TILE_ROWS, panels: 1, slices: 1 }
}

/// The kernel for many rows whose work-groups share four panels.
pub(super) const GROUP: Variant = Variant { name: "matmul_group", rows: 64, panels: 4, slices: 1 };

/// Rows of an item of that kernel; as in matmul_group.cl.
const GROUP_ITEM_ROWS: usize = 8;

/// Work-items of its groups.
pub(super) const GROUP_ITEMS: [usize; 2] = [PANEL, GROUP.rows / GROUP_ITEM_ROWS];

/// Bytes of local memory that the kernels of work-groups need at most.
pub(super) const GROUP_MEMORY: u64 = 20 << 10;

/// Most rows of a run whose ops a persistent kernel computes.
pub(crate) const PERSISTENT_ROWS: usize = 4;

/// Kernels for few rows whose groups compute several panels, so that they read the rows less often.
pub(super) const GEMVS: [Variant; 7] = {
    const fn gemv(name: &'static str, rows: usize, panels: usize) -> Variant {
        Variant { name, rows, panels, slices: 0 }
    }
    [
        gemv("gemv_1_1", 1, 1),
        gemv("gemv_1_2", 1, 2),
        gemv("gemv_1_4", 1, 4),
        gemv("gemv_2_1", 2, 1),
        gemv("gemv_2_2", 2, 2),
        gemv("gemv_4_1", 4, 1),
        gemv("gemv_4_2", 4, 2),
    ]
};

/// The kernel for so many rows of so many panels of outputs, with so many groups on the device: of those whose
/// groups all have work, the one with the most panels. `has_gates`: each output panel takes two of the matrix.
pub(super) fn gemv_for(
    rows: usize,
    panels: usize,
    groups: usize,
    has_gates: bool,
) -> Option<Variant> {
    let each = if has_gates { 2 } else { 1 };
    let takes = |gemv: &Variant| {
        gemv.rows >= rows
            && gemv.panels >= each
            && panels > (gemv.panels / each - 1) * groups
            // An item that sums 8 outputs has no registers left; with gates there is no smaller kernel.
            && (has_gates || gemv.rows * gemv.panels < 8)
    };
    let fitting = GEMVS.into_iter().filter(takes);
    fitting.min_by_key(|gemv| (gemv.rows, std::cmp::Reverse(gemv.panels)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_several_panels_only_where_all_of_them_have_work() {
        let name =
            |rows, panels, has_gates| gemv_for(rows, panels, 132, has_gates).map(|gemv| gemv.name);
        let rows = [
            ((1, 128, false), "gemv_1_1"),
            ((1, 132, false), "gemv_1_1"),
            ((1, 133, false), "gemv_1_2"),
            ((1, 396, false), "gemv_1_2"),
            ((1, 397, false), "gemv_1_4"),
            ((2, 20, false), "gemv_2_1"),
            ((2, 1024, false), "gemv_2_2"),
            ((3, 1024, false), "gemv_4_1"),
            ((4, 1, false), "gemv_4_1"),
            ((1, 1, true), "gemv_1_2"),
            ((1, 132, true), "gemv_1_2"),
            ((1, 133, true), "gemv_1_4"),
            ((2, 512, true), "gemv_2_2"),
            ((4, 1, true), "gemv_4_2"),
        ];
        for ((rows, panels, gates), wanted) in rows {
            let found = name(rows, panels, gates);
            assert_eq!(found, Some(wanted), "{rows} rows, {panels} panels, gates: {gates}");
        }
        assert_eq!(name(5, 1024, false), None);
        assert!(name(PERSISTENT_ROWS, 1, false).is_some());
    }
}
