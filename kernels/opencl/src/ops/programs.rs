//! Source texts of the programs, and the programs built.

use std::collections::BTreeMap;

use super::KernelSpec;
use crate::argmax;
use crate::error::OpenClError;
use crate::pack::{PANEL, decoder};
use crate::program::{Origin, ProgramCache, Source};
use crate::session::{Kernel, Program, Session};
use lapwing_model::formats::DType;
use lapwing_model::kv::KvDtype;

pub(super) const COMMON: &str = include_str!("../common.cl");
pub(super) const FORMATS: &str = include_str!("../formats.cl");
pub(super) const MATMUL_COMMON: &str = include_str!("../matmul_common.cl");
const MATMUL: &str = include_str!("../matmul.cl");
const MATMUL_TILE: &str = include_str!("../matmul_tile.cl");
const MATMUL_GROUP: &str = include_str!("../matmul_group.cl");
pub(super) const GEMV_NORM: &str = include_str!("../gemv_norm.cl");
pub(super) const GEMV_GROUP: &str = include_str!("../gemv_group.cl");
const EMBED: &str = include_str!("../embed.cl");
const ROWS: &str = include_str!("../rows.cl");
const ROWS_GROUP: &str = include_str!("../rows_group.cl");
const ATTENTION: &str = include_str!("../attention.cl");
const ATTENTION_GROUP: &str = include_str!("../attention_group.cl");
pub(super) const PERSISTENT_PLACE: &str = include_str!("../persistent_place.cl");
pub(super) const PERSISTENT: &str = include_str!("../persistent.cl");
const PROBE: &str = include_str!("../probe.cl");

/// Kernels that are compiled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    /// Ops on rows of values.
    Rows,
    /// Ops on rows of values, whose work-groups share a row.
    RowsGroup,
    /// KV cache and attention for heads of this many values.
    Attention(usize),
    /// Matmuls with weights of the format of this number, whose items compute panels of outputs.
    MatMul(u32),
    /// Matmuls with weights of the format of this number, whose work-groups share panels of outputs.
    MatMulGroup(u32),
    /// Embedding tables of the format of this number.
    Embed(u32),
    /// Probes of the device's limits.
    Probe,
}

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
const TILE_ROWS: usize = 48;

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

/// Work-items of the groups that share a row.
pub(super) const ROW_ITEMS: usize = 256;

/// Values that an item of an element-wise op computes: of a GPU's items, neighbours compute neighbours.
pub(super) fn chunk(is_cpu: bool) -> usize {
    if is_cpu { 256 } else { 1 }
}

/// Input channels that weights are decoded in; as in formats.cl.
pub(super) const RUN: usize = 32;

/// Of `cols` input channels, those of a segment, whose products are summed first: on a GPU, as few as a
/// work-group has items for.
pub(super) fn segment(slices: Option<usize>, cols: usize) -> usize {
    slices.map_or(CPU_SEGMENT, |slices| RUN * cols.div_ceil(RUN * slices).max(1))
}

/// Input channels of a segment on a CPU.
const CPU_SEGMENT: usize = 256;

/// The text of a program.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    name: String,
    text: String,
    options: String,
}

impl Text {
    pub(super) fn new(name: &str, text: String, options: &str) -> Text {
        Text { name: name.to_owned(), text, options: options.to_owned() }
    }

    pub(crate) fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text, options: &self.options }
    }
}

impl Family {
    /// A matmul with weights of a format.
    pub(super) fn matmul(dtype: DType) -> Family {
        Family::MatMul(decoder(dtype))
    }

    /// A matmul with weights of a format, in work-groups.
    pub(crate) fn matmul_group(dtype: DType) -> Family {
        Family::MatMulGroup(decoder(dtype))
    }

    /// An embedding table of a format.
    pub(crate) fn embed(dtype: DType) -> Family {
        Family::Embed(decoder(dtype))
    }

    /// The program's source and options.
    /// `slices`: most segments that a work-group of a GPU sums; none on a CPU.
    pub(crate) fn source(self, spec: &KernelSpec, slices: Option<usize>) -> Text {
        let std = "-cl-std=CL1.2";
        let is_cpu = slices.is_none();
        // As `Matrix::upload` packs.
        let order = format!("-DBY_CHANNEL={}", u32::from(!is_cpu));
        match self {
            Family::Rows => Text {
                name: "rows".to_owned(),
                text: [COMMON, ROWS].concat(),
                options: format!("{std} -DPIECE={} -DCHUNK={}", argmax::PIECE, chunk(is_cpu)),
            },
            Family::RowsGroup => Text {
                name: "rows-group".to_owned(),
                text: [COMMON, ROWS_GROUP].concat(),
                options: format!("{std} -DPIECE={} -DITEMS={ROW_ITEMS}", argmax::PIECE),
            },
            Family::Attention(head_dim) => Text {
                name: format!("attention-{head_dim}"),
                text: [COMMON, ATTENTION, if is_cpu { "" } else { ATTENTION_GROUP }].concat(),
                options: format!(
                    "{std} -DHEAD_DIM={head_dim} -DDIM_LANES={} -DPAGE_ROWS={} -DKEY_LANES={} \
                     -DKV_F16={} -DITEMS={ROW_ITEMS}",
                    lanes(head_dim),
                    spec.page_rows,
                    lanes(spec.page_rows),
                    u32::from(spec.kv == KvDtype::F16)
                ),
            },
            Family::MatMul(format) => Text {
                name: format!("matmul-{format}"),
                text: matmul_text(is_cpu),
                options: format!(
                    "{std} -DLANES=16 -DFORMAT={format} {order} -DROW_DIM={} -DCHANNEL_DIM={} \
                     -DTILE_ROWS={TILE_ROWS} -DSEGMENT={}",
                    u32::from(!is_cpu),
                    u32::from(is_cpu),
                    if is_cpu { CPU_SEGMENT.to_string() } else { "segment".to_owned() },
                ),
            },
            Family::MatMulGroup(format) => Text {
                name: format!("matmul-group-{format}"),
                text: matmul_group_text(slices.unwrap_or(1)),
                options: format!(
                    "{std} -DLANES=1 -DFORMAT={format} {order} -DGROUP_ROWS={} -DSEGMENT=segment \
                     -DITEMS={ROW_ITEMS}",
                    GROUP.rows,
                ),
            },
            Family::Embed(format) => Text {
                name: format!("embed-{format}"),
                text: [COMMON, FORMATS, EMBED].concat(),
                options: format!("{std} -DLANES=1 -DFORMAT={format} {order}"),
            },
            Family::Probe => {
                Text { name: "probe".to_owned(), text: PROBE.to_owned(), options: std.to_owned() }
            }
        }
    }
}

/// A text that is compiled under a name, for a number of rows.
pub(super) fn part(
    Variant { name, slices, panels, .. }: Variant,
    rows: usize,
    text: &str,
) -> String {
    format!(
        "#define NAME {name}\n#define ROWS {rows}\n#define EACH EACH_{rows}\n\
         #define SLICES {slices}\n#define PANELS {panels}\n#define EACH_PANEL EACH_{panels}\n{text}\
         #undef NAME\n#undef ROWS\n#undef EACH\n#undef SLICES\n#undef PANELS\n#undef EACH_PANEL\n"
    )
}

fn matmul_text(is_cpu: bool) -> String {
    let mut text = [COMMON, FORMATS, MATMUL_COMMON].concat();
    text.extend(FEW.map(|few| part(few, few.rows, MATMUL)));
    if is_cpu {
        text.extend(TILE_STEPS.map(|step| part(tile(step), step, MATMUL_TILE)));
    }
    text
}

fn matmul_group_text(slices: usize) -> String {
    let mut text = [COMMON, FORMATS, MATMUL_COMMON, MATMUL_GROUP, GEMV_NORM].concat();
    let few = few_in_groups(slices).into_iter().chain(gates_in_groups(slices));
    text.extend(few.map(|few| part(few, few.rows, GEMV_GROUP)));
    text
}

/// Lanes of the widest vector type that divides `len`.
fn lanes(len: usize) -> usize {
    [16, 8, 4, 2].into_iter().find(|lanes| len.is_multiple_of(*lanes)).unwrap_or(1)
}

/// A program with the kernels that were used.
#[derive(Debug)]
pub(super) struct Built {
    text: Text,
    program: Program,
    origin: Origin,
    kernels: BTreeMap<&'static str, Kernel>,
}

impl Built {
    /// Builds a program.
    pub(super) fn new(
        session: &Session,
        cache: &ProgramCache,
        text: Text,
    ) -> Result<Built, OpenClError> {
        let (program, origin) = cache.build(session, &text.source())?;
        Ok(Built { text, program, origin, kernels: BTreeMap::new() })
    }

    /// A kernel of the program.
    pub(super) fn kernel(
        &mut self,
        session: &Session,
        name: &'static str,
    ) -> Result<&mut Kernel, OpenClError> {
        if !self.kernels.contains_key(name) {
            let kernel = session.kernel(&self.program, name)?;
            self.kernels.insert(name, kernel);
        }
        Ok(self.kernels.get_mut(name).expect("it was inserted"))
    }

    /// A kernel of the program, for another owner.
    pub(super) fn take(
        &self,
        session: &Session,
        name: &'static str,
    ) -> Result<Kernel, OpenClError> {
        session.kernel(&self.program, name)
    }

    /// Why its file in the folder was not used, if there was one.
    pub(super) fn refused(&self) -> Option<String> {
        let Origin::Refused(reason) = &self.origin else { return None };
        Some(format!("the compiled program '{}' was not used: {reason}", self.text.name))
    }

    /// Writes it to the folder, unless it came from there.
    pub(super) fn save(&self, session: &Session, cache: &ProgramCache) {
        if self.origin != Origin::Cache {
            cache.save(session, &self.text.source(), &self.program);
        }
    }
}
