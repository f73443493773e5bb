//! Which kernels compute the matmuls of a format, and the times that decided.

use super::programs::segment;
use super::variants::{FEW, GROUP, GROUP_ITEMS, Variant, few_in_groups, gates_in_groups, tile};
use crate::pack::PANEL;

/// Fewest rows for the kernels for many rows, whose items compute panels.
const TILE_MIN: usize = 6;

/// Fewest rows for the kernel for many rows, whose work-groups share panels.
const GROUP_MIN: usize = 17;

/// Kernels for many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManyRows {
    /// Each item decodes a part of a panel, and multiplies this many rows together.
    Tile(usize),
    /// The kernels for few rows.
    AsFew,
    /// A work-group shares two panels.
    Group,
}

/// Kernels for few rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FewRows {
    /// Each item computes two panels.
    Wide,
    /// A work-group shares one panel.
    Group,
}

/// The kernels of a matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shapes {
    pub(crate) many: ManyRows,
    pub(crate) few: FewRows,
}

/// How the items of a kernel share its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// Each item computes panels.
    Items,
    /// A work-group of these items computes panels.
    Groups([usize; 2]),
}

impl Shapes {
    /// The kernel for the first of `rows` rows with `cols` inputs, with gates or without, and how many rows it takes.
    /// `slices`: most segments that a work-group of a GPU sums; none on a CPU.
    pub(super) fn variant(
        self,
        rows: usize,
        cols: usize,
        has_gates: bool,
        slices: Option<usize>,
    ) -> (Variant, Grouping, usize) {
        match self.many {
            ManyRows::Tile(step) if self.many.takes(rows) => {
                return (tile(step), Grouping::Items, rows);
            }
            ManyRows::Group if self.many.takes(rows) => {
                return (GROUP, Grouping::Groups(GROUP_ITEMS), rows);
            }
            _ => {}
        }
        match self.few {
            FewRows::Wide => {
                let few =
                    FEW.into_iter().find(|few| few.rows <= rows).unwrap_or(FEW[FEW.len() - 1]);
                (few, Grouping::Items, rows / few.rows * few.rows)
            }
            FewRows::Group => {
                let segments = cols.div_ceil(segment(slices, cols));
                let slices = slices.unwrap_or(1);
                let variants = match has_gates {
                    true => gates_in_groups(slices).to_vec(),
                    false => few_in_groups(slices).to_vec(),
                };
                let most = variants[variants.len() - 1].rows;
                let fits = |few: &Variant| few.rows >= rows.min(most) && few.slices >= segments;
                let few = variants.into_iter().find(fits).expect("the last takes all segments");
                (few, Grouping::Groups([PANEL, few.slices]), rows)
            }
        }
    }
}

/// The kernels of the matmuls of a format, with the times that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tuned {
    pub(crate) shapes: Shapes,
    /// Nanoseconds of each kernel for many rows; empty if there was no choice or no clock.
    pub(crate) many: Vec<(ManyRows, u64)>,
    /// Nanoseconds of each kernel for few rows; empty if there was no choice or no clock.
    pub(crate) few: Vec<(FewRows, u64)>,
}

impl Tuned {
    pub(super) fn of(
        many: Vec<(ManyRows, u64)>,
        few: Vec<(FewRows, u64)>,
        default: Shapes,
    ) -> Tuned {
        let shapes = Shapes {
            many: many.iter().min_by_key(|(_, ns)| *ns).map_or(default.many, |(many, _)| *many),
            few: few.iter().min_by_key(|(_, ns)| *ns).map_or(default.few, |(few, _)| *few),
        };
        Tuned { shapes, many, few }
    }

    pub(super) fn to_text(&self) -> String {
        let many = self.many.iter().map(|(many, ns)| format!("many {} {ns}\n", many.name()));
        let few = self.few.iter().map(|(few, ns)| format!("few {} {ns}\n", few.name()));
        many.chain(few).collect()
    }

    /// Reads [`Tuned::to_text`]; `None` unless it has a time for each of the candidates.
    pub(super) fn parse(text: &str, candidates: &Candidates) -> Option<Tuned> {
        let ns = |rows: &str, name: &str| {
            let found = text.lines().find_map(|line| {
                line.strip_prefix(rows)?.strip_prefix(' ')?.strip_prefix(name)?.strip_prefix(' ')
            });
            found?.parse::<u64>().ok()
        };
        let many = candidates.many.iter().map(|many| Some((*many, ns("many", many.name())?)));
        let few = candidates.few.iter().map(|few| Some((*few, ns("few", few.name())?)));
        Some(Tuned::of(
            many.collect::<Option<_>>()?,
            few.collect::<Option<_>>()?,
            candidates.default,
        ))
    }
}

impl ManyRows {
    /// Whether they compute so many rows; the kernels for few rows compute others.
    pub(super) fn takes(self, rows: usize) -> bool {
        match self {
            ManyRows::Tile(_) => rows >= TILE_MIN,
            ManyRows::Group => rows >= GROUP_MIN,
            ManyRows::AsFew => false,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            ManyRows::Tile(4) => "tile-4",
            ManyRows::Tile(6) => "tile-6",
            ManyRows::Tile(8) => "tile-8",
            ManyRows::Tile(_) => "tile-12",
            ManyRows::AsFew => "wide",
            ManyRows::Group => "group",
        }
    }
}

impl FewRows {
    pub(crate) fn name(self) -> &'static str {
        match self {
            FewRows::Wide => "wide",
            FewRows::Group => "group",
        }
    }
}

/// Kernels that suit a device's features.
pub(super) struct Candidates {
    pub(super) many: Vec<ManyRows>,
    pub(super) few: Vec<FewRows>,
    /// The kernels of a device without a clock.
    pub(super) default: Shapes,
}
