//! The text of a model's persistent kernel, made of those of the model's kernels.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::ops::programs::{
    COMMON, FORMATS, Family, GEMV_GROUP, GEMV_NORM, KernelId, KernelSpec, MATMUL_COMMON,
    PERSISTENT, PERSISTENT_PLACE, ROW_ITEMS, Text, part,
};
use crate::ops::variants::{GEMVS, Variant};
use crate::pack::PANEL;
use crate::session::{Arg, HEAD_WORDS, OP_WORDS};

/// Words of local memory for the groups that are computed side by side.
pub(super) const MEMORY: usize = 4096 + 128;

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Parameter {
    Buffer,
    Int,
    Float,
}

impl Parameter {
    pub(in crate::ops) fn of(args: &[Arg<'_>]) -> Vec<Parameter> {
        let parameter = |arg: &Arg<'_>| match arg {
            Arg::Buffer(_) => Parameter::Buffer,
            Arg::Int(_) => Parameter::Int,
            Arg::Float(_) => Parameter::Float,
        };
        args.iter().map(parameter).collect()
    }
}

/// How a kernel's outputs are shared.
#[derive(Clone, Copy, Debug)]
enum Sharing {
    Items,
    /// Groups of this width and height.
    Groups(usize, usize),
    /// Every group of the device computes the same, for the op after it.
    EveryGroup,
}

/// The function that norms the rows of the matmul after it.
pub(in crate::ops) const NORM: KernelId = Family::RowsGroup.kernel("matmul_norm");

/// Its parameters, as it is never launched alone.
const NORM_PARAMETERS: [Parameter; 8] = [
    Parameter::Buffer,
    Parameter::Int,
    Parameter::Int,
    Parameter::Buffer,
    Parameter::Buffer,
    Parameter::Int,
    Parameter::Int,
    Parameter::Float,
];

/// Kernels of one text.
struct Piece {
    family: Family,
    text: String,
    options: String,
    kernels: Vec<(&'static str, Sharing)>,
}

/// Ops on rows of values.
const ROWS: [&str; 24] = [
    "add",
    "add_weighted",
    "mul",
    "scale",
    "soft_cap",
    "gelu",
    "gelu_tanh",
    "relu_squared",
    "clamp_to",
    "xielu",
    "sigmoid",
    "softplus",
    "exponential",
    "gated_silu",
    "gated_gelu",
    "gated_sigmoid",
    "gated_relu",
    "gated_clamped",
    "weigh_rows",
    "mix_experts",
    "rope",
    "select_rows",
    "repeat_values",
    "join_heads",
];

fn pieces(spec: &KernelSpec, slices: usize) -> Vec<Piece> {
    let row_groups = Sharing::Groups(ROW_ITEMS, 1);
    let of_family = |family: Family, kernels: &[(&'static str, Sharing)]| {
        let text = family.source(spec, Some(slices));
        let source = text.source();
        let body = source.text.strip_prefix(COMMON).unwrap_or(source.text);
        let (text, options) = (body.to_owned(), source.options.to_owned());
        Piece { family, text, options, kernels: kernels.to_vec() }
    };
    let items = |names: &[&'static str]| -> Vec<_> {
        names.iter().map(|name| (*name, Sharing::Items)).collect()
    };
    let rows = items(&ROWS);
    let in_groups = [
        ("rms_norm", row_groups),
        ("layer_norm", row_groups),
        ("excess", row_groups),
        ("with_length", row_groups),
        ("top", row_groups),
        ("choose_experts", row_groups),
        (NORM.name, Sharing::EveryGroup),
    ];
    let mut pieces = vec![of_family(Family::Rows, &rows), of_family(NORM.family, &in_groups)];
    pieces[1].text += GEMV_NORM;
    for dims in &spec.head_dims {
        let mut kernels = items(&["kv_write", "rope_kv"]);
        kernels.push(("attention_group", row_groups));
        pieces.push(of_family(Family::Attention(*dims), &kernels));
    }
    if spec.convolves {
        pieces.push(of_family(Family::ShortConv, &items(&["short_conv", "keep_rows"])));
    }
    for key_dim in &spec.key_dims {
        let kernels = [("linear_attention_group", row_groups)];
        pieces.push(of_family(Family::LinearAttention(*key_dim), &kernels));
    }
    for dtype in &spec.dtypes {
        let family = Family::matmul_group(*dtype);
        // Formats without a decoder of their own share one.
        if pieces.iter().any(|piece| piece.family == family) {
            continue;
        }
        pieces.push(of_family(Family::embed(*dtype), &items(&["embed"])));
        let mut piece = of_family(family, &[]);
        piece.text = [FORMATS, MATMUL_COMMON].concat();
        for gemv in GEMVS {
            let gemv = Variant { slices, ..gemv };
            piece.text += &part(gemv, gemv.rows, GEMV_GROUP);
            piece.kernels.push((gemv.name, Sharing::Groups(PANEL, slices)));
        }
        pieces.push(piece);
    }
    pieces
}

/// The macros that a text defines.
fn macros(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.strip_prefix("#define ")?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

/// The functions and types that a text defines.
fn names(text: &str) -> Vec<&str> {
    let word = |part: &'_ str| -> usize {
        part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len())
    };
    let mut names = Vec::new();
    for line in text.lines() {
        let function = match line.split_once("void ") {
            Some((before, after))
                if before.starts_with("kernel") || before.starts_with("inline") =>
            {
                Some(after)
            }
            _ => line.strip_prefix("inline ").and_then(|rest| Some(rest.split_once(' ')?.1)),
        };
        let type_name = line.strip_suffix(';').filter(|line| {
            line.starts_with("typedef ") && !line.contains('{') || line.starts_with("} ")
        });
        let type_name = type_name.and_then(|line| line.rsplit(' ').next());
        let found = function.or(type_name).map(|part| &part[..word(part)]);
        names.extend(found.filter(|name| !name.is_empty() && *name != "NAME"));
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The text of a piece, with names and macros of its own: its number is appended to names.
fn apart(piece: &Piece, number: usize) -> String {
    let options = piece.options.split(' ').filter_map(|option| option.strip_prefix("-D"));
    let options: Vec<_> = options.filter_map(|option| option.split_once('=')).collect();
    let mut named = names(&piece.text);
    named.extend(
        piece.kernels.iter().map(|(name, _)| *name).filter(|name| name.starts_with("gemv")),
    );
    let mut text = String::new();
    for (name, value) in &options {
        _ = writeln!(text, "#define {name} {value}");
    }
    for name in &named {
        _ = writeln!(text, "#define {name} {name}__{number}");
    }
    text += &piece.text;
    let defined = options.iter().map(|(name, _)| *name).chain(named).chain(macros(&piece.text));
    let mut defined: Vec<_> = defined.collect();
    defined.sort_unstable();
    defined.dedup();
    for name in defined {
        _ = writeln!(text, "#undef {name}");
    }
    text
}

/// How the kernel calls one of its functions.
fn call(function: &str, parameters: &[Parameter]) -> String {
    let mut at = 0;
    let args = parameters.iter().map(|parameter| {
        let (name, words) = match parameter {
            Parameter::Buffer => ("BUFFER", 2),
            Parameter::Int => ("INT", 1),
            Parameter::Float => ("FLOAT", 1),
        };
        at += words;
        format!("{name}({})", at - words)
    });
    let args = args.collect::<Vec<_>>().join(", ");
    format!("{function}(place, memory, {args})")
}

/// The numbers of the kernels that a persistent kernel has.
pub(super) type Numbers = BTreeMap<KernelId, u32>;

/// The program of the persistent kernel, with the numbers of its kernels.
pub(super) fn program(
    spec: &KernelSpec,
    parameters: &BTreeMap<KernelId, Vec<Parameter>>,
    slices: usize,
) -> (Text, Numbers) {
    let mut text = [PERSISTENT_PLACE, COMMON].concat();
    let (mut cases, mut numbers) = (String::new(), Numbers::new());
    let mut is_for_next = String::new();
    for (at, piece) in pieces(spec, slices).iter().enumerate() {
        text += &apart(piece, at);
        for (name, sharing) in &piece.kernels {
            // All matmuls of a format have the same parameters.
            let is_gemv = |known: &&str| name.starts_with("gemv") && known.starts_with("gemv");
            let known = parameters.iter().find(|(known, _)| {
                known.family == piece.family && (known.name == *name || is_gemv(&known.name))
            });
            let known = known.map(|(_, parameters)| &parameters[..]);
            let kernel = piece.family.kernel(name);
            let known = if kernel == NORM { Some(&NORM_PARAMETERS[..]) } else { known };
            let Some(parameters) = known else { continue };
            let number = numbers.len() as u32;
            numbers.insert(kernel, number);
            let call = call(&format!("{name}__{at}"), parameters);
            let call = match sharing {
                Sharing::Items => format!("EACH_ITEM({call})"),
                Sharing::EveryGroup => {
                    _ = write!(is_for_next, " || (number) == {number}");
                    format!("{call};")
                }
                Sharing::Groups(width, height) => format!("EACH_GROUP({width}, {height}, {call})"),
            };
            _ = write!(cases, " case {number}: {call} break;");
        }
    }
    _ = writeln!(
        text,
        "#define CASES{cases}\n#define IS_FOR_NEXT(number) (false{is_for_next})\n#define OP_WORDS {OP_WORDS}\n\
         #define HEAD {HEAD_WORDS}\n\
         #define ROW_ITEMS {ROW_ITEMS}\n#define GROUP_ITEMS {}\n#define MEMORY {MEMORY}",
        PANEL * slices
    );
    text += PERSISTENT;
    (Text::new("persistent", text, "-cl-std=CL1.2"), numbers)
}
