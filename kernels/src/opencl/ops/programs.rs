//! Source texts of the programs, and the programs built.

use std::collections::BTreeMap;

use super::KernelSpec;
use crate::kv::KvDtype;
use crate::opencl::error::OpenClError;
use crate::opencl::program::{Origin, ProgramCache, Source};
use crate::opencl::session::{Kernel, Program, Session};
use crate::opencl::top;
use crate::quant::DType;

const COMMON: &str = include_str!("../common.cl");
const FORMATS: &str = include_str!("../formats.cl");
const MATMUL_COMMON: &str = include_str!("../matmul_common.cl");
const MATMUL: &str = include_str!("../matmul.cl");
const MATMUL_TILE: &str = include_str!("../matmul_tile.cl");
const EMBED: &str = include_str!("../embed.cl");
const ROWS: &str = include_str!("../rows.cl");
const ATTENTION: &str = include_str!("../attention.cl");
const PROBE: &str = include_str!("../probe.cl");

/// Kernels that are compiled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    /// Ops on rows of values.
    Rows,
    /// KV cache and attention for heads of this many values.
    Attention(usize),
    /// Matmuls with weights of the format of this number.
    MatMul(u32),
    /// Embedding tables of the format of this number.
    Embed(u32),
    /// Probes of the device's limits.
    Probe,
}

/// A kernel of a matmul: its name, and how many rows and panels an item computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    pub(super) panels: usize,
}

/// Kernels for few rows, the most rows first.
pub(super) const FEW: [Variant; 3] = [
    Variant { name: "matmul_4", rows: 4, panels: 2 },
    Variant { name: "matmul_2", rows: 2, panels: 2 },
    Variant { name: "matmul_1", rows: 1, panels: 2 },
];

/// The kernel for many rows, of CPU devices.
pub(super) const TILE: Variant = Variant { name: "matmul_tile", rows: 32, panels: 1 };

/// Rows that the tile kernel multiplies together: a divisor of those of an item.
const TILE_STEP: usize = 8;

/// The text of a program.
#[derive(Clone, Debug)]
pub(super) struct Text {
    name: String,
    text: String,
    options: String,
}

impl Text {
    fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text, options: &self.options }
    }
}

impl Family {
    /// A matmul with weights of a format.
    pub(super) fn matmul(dtype: DType) -> Family {
        Family::MatMul(dtype.gguf_id())
    }

    /// An embedding table of a format.
    pub(super) fn embed(dtype: DType) -> Family {
        Family::Embed(dtype.gguf_id())
    }

    /// The program's source and options.
    pub(super) fn source(self, spec: &KernelSpec, is_cpu: bool) -> Text {
        let std = "-cl-std=CL1.2";
        match self {
            Family::Rows => Text {
                name: "rows".to_owned(),
                text: [COMMON, ROWS].concat(),
                options: format!("{std} -DPIECE={}", top::PIECE),
            },
            Family::Attention(head_dim) => Text {
                name: format!("attention-{head_dim}"),
                text: [COMMON, ATTENTION].concat(),
                options: format!(
                    "{std} -DHEAD_DIM={head_dim} -DDIM_LANES={} -DPAGE_ROWS={} -DKEY_LANES={} \
                     -DKV_F16={}",
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
                    "{std} -DLANES=16 -DFORMAT={format} -DROW_DIM={} -DCHANNEL_DIM={} \
                     -DTILE_ROWS={}",
                    u32::from(!is_cpu),
                    u32::from(is_cpu),
                    TILE.rows
                ),
            },
            Family::Embed(format) => Text {
                name: format!("embed-{format}"),
                text: [COMMON, FORMATS, EMBED].concat(),
                options: format!("{std} -DLANES=1 -DFORMAT={format}"),
            },
            Family::Probe => {
                Text { name: "probe".to_owned(), text: PROBE.to_owned(), options: std.to_owned() }
            }
        }
    }
}

fn matmul_text(is_cpu: bool) -> String {
    let part = |name: &str, rows: usize, text: &str| {
        format!(
            "#define NAME {name}\n#define ROWS {rows}\n#define EACH EACH_{rows}\n{text}\
             #undef NAME\n#undef ROWS\n#undef EACH\n"
        )
    };
    let mut text = [COMMON, FORMATS, MATMUL_COMMON].concat();
    text.extend(FEW.map(|few| part(few.name, few.rows, MATMUL)));
    if is_cpu {
        text.push_str(&part(TILE.name, TILE_STEP, MATMUL_TILE));
    }
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
