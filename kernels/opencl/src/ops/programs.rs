//! Source texts of the programs.

use super::heads::HeadDims;
use super::variants::{
    FEW, GROUP, TILE_ROWS, TILE_STEPS, Variant, few_in_groups, gates_in_groups, tile,
};
use crate::pack::decoder;
use crate::program::Source;
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
const ROWS: &str =
    concat!(include_str!("../rows.cl"), include_str!("../norms.cl"), include_str!("../experts.cl"));
const ROWS_GROUP: &str = include_str!("../rows_group.cl");
const SPANS: &str = include_str!("../spans.cl");
const SHORT_CONV: &str = include_str!("../short_conv.cl");
const LINEAR_ATTENTION: &str = include_str!("../linear_attention.cl");
const LINEAR_ATTENTION_GROUP: &str = include_str!("../linear_attention_group.cl");
const ATTENTION: &str = include_str!("../attention.cl");
const ATTENTION_GROUP: &str = include_str!("../attention_group.cl");
pub(super) const PERSISTENT_PLACE: &str = include_str!("../persistent_place.cl");
pub(super) const PERSISTENT: &str = include_str!("../persistent.cl");
const PROBE: &str = include_str!("../probe.cl");

/// What the kernels of a model are compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelSpec {
    /// Formats of the weight matrices.
    pub(crate) dtypes: Vec<DType>,
    /// Formats of the matrices of experts.
    pub(crate) experts: Vec<DType>,
    /// Heads of every kind of attention layer.
    pub(crate) head_dims: Vec<HeadDims>,
    /// Whether there are convolutions over a few rows.
    pub(crate) convolves: bool,
    /// Values of a key of every kind of linear attention.
    pub(crate) key_dims: Vec<usize>,
    /// Positions of a KV page.
    pub(crate) page_rows: usize,
    /// Storage type of keys and values.
    pub(crate) kv: KvDtype,
}

impl Default for KernelSpec {
    /// Kernels without a model: no matrices, no heads, and pages of one position.
    fn default() -> KernelSpec {
        KernelSpec {
            dtypes: vec![],
            experts: vec![],
            head_dims: vec![],
            convolves: false,
            key_dims: vec![],
            page_rows: 1,
            kv: KvDtype::F32,
        }
    }
}

/// Kernels that are compiled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    /// Ops on rows of values.
    Rows,
    /// Ops on rows of values, whose work-groups share a row.
    RowsGroup,
    /// KV cache and attention for heads of these sizes.
    Attention(HeadDims),
    /// Convolutions over a few rows, and their states.
    ShortConv,
    /// Linear attention with keys of this many values.
    LinearAttention(usize),
    /// Matmuls with weights of the format of this number, whose items compute panels of outputs.
    MatMul(u32),
    /// Matmuls with weights of the format of this number, whose work-groups share panels of outputs.
    MatMulGroup(u32),
    /// As [`MatMul`](Family::MatMul), each row with the matrix of its expert.
    Experts(u32),
    /// As [`MatMulGroup`](Family::MatMulGroup), each row with the matrix of its expert.
    ExpertsGroup(u32),
    /// Embedding tables of the format of this number.
    Embed(u32),
    /// Probes of the device's limits.
    Probe,
}

/// Columns of a piece, which the kernel `top` reduces to one result.
pub(crate) const PIECE: usize = 512;

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

/// A kernel, by its program and its name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KernelId {
    pub(super) family: Family,
    pub(super) name: &'static str,
}

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
    /// A kernel of the family.
    pub(super) const fn kernel(self, name: &'static str) -> KernelId {
        KernelId { family: self, name }
    }

    /// A matmul with weights of a format.
    pub(super) fn matmul(dtype: DType) -> Family {
        Family::MatMul(decoder(dtype))
    }

    /// A matmul with weights of a format, in work-groups.
    pub(crate) fn matmul_group(dtype: DType) -> Family {
        Family::MatMulGroup(decoder(dtype))
    }

    /// Products of experts with weights of a format.
    pub(super) fn experts(dtype: DType) -> Family {
        Family::Experts(decoder(dtype))
    }

    /// Products of experts with weights of a format, in work-groups.
    pub(crate) fn experts_group(dtype: DType) -> Family {
        Family::ExpertsGroup(decoder(dtype))
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
        let has_experts = matches!(self, Family::Experts(_) | Family::ExpertsGroup(_));
        let kind = if has_experts { "experts" } else { "matmul" };
        let with_experts = format!("-DEXPERTS={}", u32::from(has_experts));
        match self {
            Family::Rows => Text {
                name: "rows".to_owned(),
                text: [COMMON, ROWS].concat(),
                options: format!("{std} -DPIECE={} -DCHUNK={}", PIECE, chunk(is_cpu)),
            },
            Family::RowsGroup => Text {
                name: "rows-group".to_owned(),
                text: [COMMON, ROWS_GROUP].concat(),
                options: format!("{std} -DPIECE={} -DITEMS={ROW_ITEMS}", PIECE),
            },
            Family::Attention(HeadDims { key, value }) => Text {
                name: format!("attention-{key}-{value}"),
                text: [COMMON, ATTENTION, if is_cpu { "" } else { ATTENTION_GROUP }].concat(),
                options: format!(
                    "{std} -DKEY_DIM={key} -DVALUE_DIM={value} -DDIM_LANES={} -DPAGE_ROWS={} -DKEY_LANES={} \
                     -DKV_F16={} -DITEMS={ROW_ITEMS}",
                    lanes(value),
                    spec.page_rows,
                    lanes(spec.page_rows),
                    u32::from(spec.kv == KvDtype::F16)
                ),
            },
            Family::ShortConv => Text {
                name: "short-conv".to_owned(),
                text: [COMMON, SPANS, SHORT_CONV].concat(),
                options: format!("{std} -DCHUNK={}", chunk(is_cpu)),
            },
            Family::LinearAttention(key_dim) => Text {
                name: format!("linear-attention-{key_dim}"),
                text: linear_attention_text(is_cpu),
                options: format!("{std} -DKEYS={key_dim} -DITEMS={ROW_ITEMS}"),
            },
            Family::MatMul(format) | Family::Experts(format) => Text {
                name: format!("{kind}-{format}"),
                text: matmul_text(is_cpu),
                options: format!(
                    "{std} -DLANES=16 -DFORMAT={format} {order} -DROW_DIM={} -DCHANNEL_DIM={} \
                     -DTILE_ROWS={TILE_ROWS} -DSEGMENT={} {with_experts}",
                    u32::from(!is_cpu),
                    u32::from(is_cpu),
                    if is_cpu { CPU_SEGMENT.to_string() } else { "segment".to_owned() },
                ),
            },
            Family::MatMulGroup(format) | Family::ExpertsGroup(format) => Text {
                name: format!("{kind}-group-{format}"),
                text: matmul_group_text(slices.unwrap_or(1)),
                options: format!(
                    "{std} -DLANES=1 -DFORMAT={format} {order} -DGROUP_ROWS={} -DSEGMENT=segment \
                     -DITEMS={ROW_ITEMS} {with_experts}",
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

fn linear_attention_text(is_cpu: bool) -> String {
    let in_groups = if is_cpu { "" } else { LINEAR_ATTENTION_GROUP };
    [COMMON, SPANS, LINEAR_ATTENTION, in_groups].concat()
}

/// Lanes of the widest vector type that divides `len`.
fn lanes(len: usize) -> usize {
    [16, 8, 4, 2].into_iter().find(|lanes| len.is_multiple_of(*lanes)).unwrap_or(1)
}
