//! Kernels in Oclgrind, a simulator of OpenCL devices: no kernel of a GPU reads or writes beyond a buffer,
//! and no two work-items of a launch race for memory.

mod experts;
mod states;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use super::cases;
use crate::ops::{Family, HeadDims, KernelSpec};
use crate::pack::Stored;
use lapwing_model::formats::DType;
use lapwing_model::kv::KvDtype;

const PROGRAM: &str = "oclgrind-kernel";

/// Segments of a sum that a work-group shares.
const SLICES: usize = 16;

/// An argument of a kernel.
enum Arg {
    /// A buffer of these bytes, filled with 32-bit words of this value.
    Words(usize, i32),
    /// A buffer of these words.
    Numbers(Vec<i32>),
    /// A buffer of so many floats.
    Floats(usize),
    Int(usize),
    Float(f32),
}
use Arg::{Float, Floats, Int, Numbers, Words};

/// A launch: the kernel, its work-groups and their items, and the arguments.
struct Launch {
    kernel: &'static str,
    groups: [usize; 3],
    local: [usize; 2],
    args: Vec<Arg>,
}

impl Launch {
    fn new(
        kernel: &'static str,
        groups: [usize; 3],
        local: [usize; 2],
        args: impl IntoIterator<Item = Arg>,
    ) -> Launch {
        Launch { kernel, groups, local, args: args.into_iter().collect() }
    }

    /// Its description for the simulator.
    fn text(&self) -> String {
        let ([x, y, z], [columns, rows]) = (self.groups, self.local);
        let mut text = format!(
            "kernel.cl\n{}\n{} {} {z}\n{columns} {rows} 1\n",
            self.kernel,
            x * columns,
            y * rows
        );
        for arg in &self.args {
            let line = match arg {
                Words(bytes, value) => format!("<size={bytes} int fill={value}>"),
                Numbers(words) => {
                    let text: Vec<String> = words.iter().map(i32::to_string).collect();
                    format!("<size={} int> {}", 4 * words.len(), text.join(" "))
                }
                Floats(count) => format!("<size={} float fill=0.5>", 4 * count),
                Int(value) => format!("<size=4 int> {value}"),
                Float(value) => format!("<size=4 float> {value}"),
            };
            writeln!(text, "{line}").unwrap();
        }
        text
    }
}

/// Whether the simulator is there. Without it the test is skipped aloud, or fails where LAPWING_TEST is
/// set.
fn is_installed() -> bool {
    let found = Command::new(PROGRAM).arg("--version").output().is_ok();
    if !found {
        let needed = std::env::var_os("LAPWING_TEST").is_some();
        assert!(!needed, "{PROGRAM} is not installed");
        eprintln!("SKIPPED a test: {PROGRAM} is not installed");
    }
    found
}

/// What the simulator says of a launch of a program in a folder, unless it finds nothing.
fn findings(folder: &Path, text: &str, options: &str, launch: &Launch) -> Option<String> {
    std::fs::write(folder.join("kernel.cl"), text).unwrap();
    std::fs::write(folder.join("launch.sim"), launch.text()).unwrap();
    let mut run = Command::new(PROGRAM);
    run.args(["--data-races", "--max-errors", "4", "--build-options", options, "launch.sim"]);
    let output = run.current_dir(folder).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines = said.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.filter(|line| !line.contains("warning")).collect();
    (!lines.is_empty() || !output.status.success()).then(|| lines.join("\n"))
}

fn check(family: Family, kv: KvDtype, launches: impl IntoIterator<Item = Launch>) {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let spec = KernelSpec { page_rows: 4, kv, ..KernelSpec::default() };
    let text = family.source(&spec, Some(SLICES));
    let source = text.source();
    for launch in launches {
        let found = findings(folder.path(), source.text, source.options, &launch);
        assert_eq!(found, None, "{family:?} {}", launch.kernel);
    }
}

#[test]
fn the_simulator_finds_a_planted_race_and_a_planted_access_beyond_a_buffer() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text =
        "kernel void planted(global int *out, global int *at) { out[at[1]] = get_global_id(0); }";
    let args = |at| [Words(64, 0), Numbers(vec![1, at])];
    let launch = |at| Launch::new("planted", [4, 1, 1], [4, 1], args(at));
    let found = |at| findings(folder.path(), text, "", &launch(at)).unwrap_or_default();
    assert!(found(3).contains("race"), "{}", found(3));
    assert!(found(16).contains("Invalid write"), "{}", found(16));
}

/// A view of rows in a buffer of its own.
fn view(rows: usize, width: usize) -> [Arg; 3] {
    [Floats(rows * width), Int(0), Int(width)]
}

#[test]
fn ops_on_rows_do_not_race() {
    let (rows, heads, len) = (3, 2, 70);
    let width = heads * len;
    let sizes = || [Int(rows), Int(width)];
    let of = |views: usize| (0..views).flat_map(|_| view(rows, width)).collect::<Vec<_>>();
    let plain = |kernel, views| {
        Launch::new(
            kernel,
            [width.div_ceil(64), rows, 1],
            [64, 1],
            of(views).into_iter().chain(sizes()),
        )
    };
    let curves = ["gelu", "gelu_tanh", "relu_squared", "clamp_to"];
    let more = ["scale", "soft_cap", "sigmoid", "softplus", "exponential"];
    let unary = curves.into_iter().chain(more).map(|name| {
        let mut launch = plain(name, 2);
        launch.args.push(Float(5.0));
        launch
    });
    let rope = of(1).into_iter().chain(view(rows, 64)).chain(of(1));
    let rope = rope.chain([Int(rows), Int(heads), Int(len), Int(32), Int(0)]);
    let rope = Launch::new("rope", [1, rows, heads], [64, 1], rope);
    let select = of(1).into_iter().chain([Words(4 * rows, 1)]).chain(of(1));
    let select = select.chain([Int(0), Int(rows)]).chain(sizes());
    let select = Launch::new("select_rows", [width.div_ceil(64), rows, 1], [64, 1], select);
    let elementwise =
        ["add", "mul", "gated_silu", "gated_gelu", "gated_sigmoid", "gated_relu", "gated_clamped"];
    let elementwise = elementwise.map(|name| {
        let mut launch = plain(name, 3);
        let numbers = if name == "gated_clamped" { &[1.7, 7.0, 7.0, 1.0][..] } else { &[] };
        launch.args.extend(numbers.iter().copied().map(Float));
        launch
    });
    let mut repeat = plain("repeat_values", 2);
    repeat.args.push(Int(2));
    let mut join = plain("join_heads", 3);
    // Heads of 20 and 15 values of the first and the second.
    join.args.extend([20, 15, 15].map(Int));
    let mut xielu = plain("xielu", 2);
    xielu.args.extend([0.8, 0.6, 0.5, -1e-6].map(Float));
    let mut weighted = plain("add_weighted", 4);
    weighted.args[6] = Floats(rows);
    weighted.args[8] = Int(1);
    let rest = [rope, select, repeat, join, xielu, weighted];
    check(Family::Rows, KvDtype::F32, elementwise.into_iter().chain(unary).chain(rest));

    let norm = of(1).into_iter().chain([Floats(len)]).chain(of(1));
    let norm = norm.chain([Int(rows), Int(heads), Int(len), Float(1e-5)]);
    let norm = Launch::new("rms_norm", [heads, rows, 1], [256, 1], norm);
    let layer = of(1).into_iter().chain([Floats(width), Floats(width)]).chain(of(1));
    let layer = layer.chain([Int(rows), Int(heads), Int(len), Int(3), Float(1e-5)]);
    let layer = Launch::new("layer_norm", [heads, rows, 1], [256, 1], layer);
    let logits = 700;
    let top = view(rows, logits).into_iter().chain([Floats(3 * 2 * rows)]);
    let top = top.chain([Int(rows), Int(logits), Int(2)]);
    let top = Launch::new("top", [2, rows, 1], [256, 1], top);
    let mut excess = plain("excess", 2);
    excess.args.push(Float(1.6));
    let in_groups = [excess, plain("with_length", 3)].map(|launch| Launch {
        groups: [1, rows, 1],
        local: [256, 1],
        ..launch
    });
    check(Family::RowsGroup, KvDtype::F32, [norm, layer, top].into_iter().chain(in_groups));
}

#[test]
fn attention_and_the_cache_do_not_race() {
    let (heads, kv_heads, key, rows, pages) = (4, 2, 24, 2, 3);
    for (kv, bytes, value) in [(KvDtype::F32, 4, 24), (KvDtype::F16, 2, 40)] {
        let cache = || Words(pages * kv_heads * (key + value) * 4 * bytes, 0);
        // Every row is at position 9 of the same pages, so a launch that writes has one row.
        let places = |rows: usize| {
            let lists = [Words(4 * rows, 9), Words(4 * rows, 0), Words(4 * pages, 1)];
            let sizes = [0, 0, 0, pages, pages, kv_heads].map(Int);
            lists.into_iter().chain(sizes)
        };
        let of = |rows: usize, heads: usize| view(rows, heads * key);
        let values = |rows: usize, heads: usize| view(rows, heads * value);
        let write = of(1, kv_heads).into_iter().chain(values(1, kv_heads)).chain([cache()]);
        let write = write.chain(places(1)).chain([Int(1)]);
        let write = Launch::new("kv_write", [1, kv_heads, 1], [64, 1], write);

        let rotate = of(1, heads).into_iter().chain(view(1, 16)).chain(of(1, heads));
        let rotate = rotate.chain([heads, 8, 1].map(Int));
        let rotate = rotate.chain(of(1, kv_heads)).chain(values(1, kv_heads)).chain([cache()]);
        let rotate = rotate.chain(places(1)).chain([Int(1)]);
        let rotate = Launch::new("rope_kv", [1, heads + 2 * kv_heads, 1], [64, 1], rotate);

        let attend = of(rows, heads).into_iter().chain([cache()]).chain(values(rows, heads));
        let attend = attend.chain(places(rows)).chain([rows, heads, 6].map(Int));
        let attend = attend.chain([Float(0.2), Float(30.0), Floats(heads), Int(1)]);
        let attend = Launch::new("attention_group", [heads, rows, 1], [256, 1], attend);
        check(Family::Attention(HeadDims { key, value }), kv, [write, rotate, attend]);
    }
}

#[test]
fn matmuls_and_embeddings_do_not_race() {
    let channels = 40;
    // Two formats without and with blocks.
    let all = [DType::F32, DType::Q4_0, DType::F16, DType::Q8_0, DType::Q5K, DType::Q6K];
    for &dtype in cases(&all[..2], &all) {
        let cols = 64usize.next_multiple_of(dtype.block_len());
        // 64 channels: 32 gates and as many ups.
        let bytes = vec![0; 64 * dtype.row_bytes(cols).unwrap()];
        let stored = Stored { dtype, bytes: &bytes, rows: 64, cols };
        let weights = || Words(stored.packed_bytes(), 0x0101_0101);
        let fused = |rows: usize, channels: usize, [added, normed, gate]: [usize; 3]| {
            let buffers = [weights(), Floats(rows * cols), Floats(64)];
            let outs = [Floats(rows * channels), Floats(rows * channels)];
            let sizes = [cols, rows, 0, channels, 0, cols, added, added];
            let sizes = sizes.into_iter().chain([0, channels, 0, channels, 32]).map(Int);
            let norm = [Floats(cols), Int(normed), Float(1e-5), Int(gate)];
            buffers.into_iter().chain(outs).chain(sizes).chain(norm).collect::<Vec<_>>()
        };
        let args = |rows| fused(rows, channels, [1, 0, 0]);
        let panels = channels.div_ceil(16);
        let few = [("gemv_group_1_half", 1, 8), ("gemv_group_4", 3, 16), ("gemv_group_8", 9, 16)];
        let few = few.map(|(kernel, rows, slices)| {
            let tiles = usize::div_ceil(rows, if rows < 5 { 4 } else { 8 });
            Launch::new(kernel, [panels, tiles, 1], [16, slices], args(rows))
        });
        let many = Launch::new("matmul_group", [1, 2, 1], [16, 8], args(66));
        let of_norm =
            Launch::new("gemv_group_4", [panels, 1, 1], [16, 16], fused(3, channels, [1, 1, 0]));
        let of_gates = [("gemv_gate_1", 1, 1), ("gemv_gate_4", 3, 2), ("gemv_gate_8", 9, 1)];
        let of_gates = of_gates.map(|(kernel, rows, gate)| {
            let tiles = usize::div_ceil(rows, 8);
            Launch::new(kernel, [2, tiles, 1], [16, 16], fused(rows, 32, [0, 1, gate]))
        });
        let launches = few.into_iter().chain([many, of_norm]).chain(of_gates);
        check(Family::matmul_group(dtype), KvDtype::F32, launches);

        let embed = [weights(), Words(8, 7), Floats(2 * cols)].into_iter();
        let embed = embed.chain([channels, cols, 2, 0, 0, cols].map(Int)).chain([Float(1.5)]);
        let embed = Launch::new("embed", [1, 2, 1], [cols.div_ceil(32), 1], embed);
        check(Family::embed(dtype), KvDtype::F32, [embed]);
    }
}
