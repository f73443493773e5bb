//! Writes the initial corpus of every target: run `cargo run --example corpus` in `fuzz`.

#[path = "../../kernels/tests/integration/gguf_bytes.rs"]
mod gguf_bytes;

use std::path::Path;

use gguf_bytes::{Raw, bytes, rich};
use lapwing_kernels::formats::DType;
use lapwing_kernels::weights::{GgufWriter, MetaValue};
use lapwing_traces::event::{
    Activity, EventKind, LaneKind, Milestone, Sending, SpanInfo, StallCause, Tags, WaitInfo,
    WaitMode,
};
use lapwing_traces::{Nanos, OsClock, Recorder, RecorderConfig, Recording};

fn main() -> std::io::Result<()> {
    write("gguf", files())?;
    write("legacy", legacy_files())?;
    write("trace", recordings())
}

/// Files older than GGUF with one layer of width 4 in F32: `version` is `None` for GGML.
fn legacy_file(magic: u32, version: Option<u32>) -> Vec<u8> {
    let mut raw = Raw(Vec::new()).u32(magic);
    raw = version.into_iter().fold(raw, Raw::u32);
    raw = [4, 4, 4, 1, 1, 4, 0].into_iter().fold(raw, Raw::u32);
    for piece in ["", "", "", " a"] {
        raw = raw.u32(piece.len() as u32);
        raw.0.extend_from_slice(piece.as_bytes());
        raw = version.into_iter().fold(raw, |raw, _| raw.u32(0));
    }
    let layer = [
        ("attention_norm", false), ("attention.wq", true), ("attention.wk", true),
        ("attention.wv", true), ("attention.wo", true), ("ffn_norm", false),
        ("feed_forward.w1", true), ("feed_forward.w2", true), ("feed_forward.w3", true),
    ];
    let whole = [("tok_embeddings", true), ("norm", false), ("output", true)];
    let names = whole.map(|(name, matrix)| (format!("{name}.weight"), matrix)).into_iter();
    let layer = layer.map(|(name, matrix)| (format!("layers.0.{name}.weight"), matrix));
    for (name, is_matrix) in names.chain(layer) {
        let dims = if is_matrix { 2 } else { 1 };
        raw = raw.u32(dims).u32(name.len() as u32).u32(0);
        raw = (0..dims).fold(raw, |raw, _| raw.u32(4));
        raw.0.extend_from_slice(name.as_bytes());
        let padding = if magic == 0x6767_6a74 { raw.0.len().next_multiple_of(32) } else { raw.0.len() };
        raw.0.resize(padding + if is_matrix { 64 } else { 16 }, 0);
    }
    raw.0
}

fn legacy_files() -> Vec<(&'static str, Vec<u8>)> {
    let whole = legacy_file(0x6767_6a74, Some(3));
    vec![
        ("ggml.bin", legacy_file(0x6767_6d6c, None)),
        ("ggmf.bin", legacy_file(0x6767_6d66, Some(1))),
        ("ggjt-v1.bin", legacy_file(0x6767_6a74, Some(1))),
        ("ggjt-v2.bin", legacy_file(0x6767_6a74, Some(2))),
        ("cut.bin", whole[..whole.len() / 2].to_vec()),
        ("ggjt-v3.bin", whole),
    ]
}

fn write(target: &str, files: Vec<(&str, Vec<u8>)>) -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&folder)?;
    for (name, file) in files {
        std::fs::write(folder.join(name), file)?;
    }
    Ok(())
}

fn recordings() -> Vec<(&'static str, Vec<u8>)> {
    let rich = rich_recording().to_bytes();
    let mut newer = rich.clone();
    newer[8] = 2;
    vec![
        ("empty.lwt", Recording::default().to_bytes()),
        ("cut.lwt", rich[..rich.len() / 2].to_vec()),
        ("newer.lwt", newer),
        ("rich.lwt", rich),
    ]
}

/// A recording with every kind of event.
fn rich_recording() -> Recording {
    let clock = std::sync::Arc::new(OsClock::start());
    let recorder = Recorder::new(clock, RecorderConfig { ring_events: 64, ..Default::default() });
    recorder.set_meta("clock", "virtual");
    let (cpu, gpu) =
        (recorder.lane("cpu", LaneKind::Actor), recorder.lane("gpu", LaneKind::Device));
    let name = recorder.name("matmul");
    let mut writer = recorder.writer();
    let (first, second, message) = (writer.span(), writer.span(), writer.message());
    let tags = Tags { chunk: Some(1), layer: Some(2), rows: 32, bytes: 4096, ..Tags::default() };
    let info = SpanInfo { name, activity: Activity::Compute, parent: None, tags };
    let inner = SpanInfo { parent: Some(first), ..info };
    let stall = Some((StallCause::SlotPool, Nanos(20)));
    let wait = WaitInfo {
        name,
        since: Nanos(30),
        target: Some(second),
        mode: WaitMode::SleepThenSpin,
        predicted: 20,
        margin: 5,
        slept: 15,
        spun: 6,
    };
    for (at, lane, kind) in [
        (5, cpu, EventKind::Request(1, Milestone::Submitted, 7)),
        (8, cpu, EventKind::Queued(first)),
        (9, cpu, EventKind::Submitted(first)),
        (10, cpu, EventKind::Started(first, info)),
        (15, cpu, EventKind::Ran(writer.span(), inner, Nanos(12))),
        (25, cpu, EventKind::Sent(Sending { message, span: Some(first), name, bytes: 64, stall })),
        (29, cpu, EventKind::Finished(first)),
        (30, gpu, EventKind::Woke(Nanos(2))),
        (30, gpu, EventKind::Received(message, Some(second))),
        (50, gpu, EventKind::Ran(second, info, Nanos(30))),
        (51, cpu, EventKind::Waited(wait)),
        (52, gpu, EventKind::Freed(name, 4096)),
        (53, gpu, EventKind::Counter(name, -4)),
    ] {
        writer.record(Nanos(at), lane, kind);
    }
    recorder.recording()
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let mut one = GgufWriter::new();
    one.tensor("t", &[32, 2], DType::Q4_0, [1; 36]);
    let mut aligned = GgufWriter::new();
    aligned.meta("general.alignment", 64u32).tensor("t", &[3], DType::F32, [1; 12]);
    let mut part = GgufWriter::new();
    part.meta("split.no", MetaValue::U16(0))
        .meta("split.count", MetaValue::U16(2))
        .meta("split.tensors.count", 2);
    let mut version_2 = bytes(&one);
    version_2[4] = 2;
    let nested = Raw::header(0, 1).text("n").u32(9).u32(9).u64(2);
    let nested = nested.u32(8).u64(1).text("deep").u32(4).u64(1).u32(7);
    vec![
        ("empty.gguf", bytes(&GgufWriter::new())),
        ("one.gguf", bytes(&one)),
        ("version-2.gguf", version_2),
        ("aligned.gguf", bytes(&aligned)),
        ("part.gguf", bytes(&part)),
        ("nested.gguf", nested.0),
        ("rich.gguf", bytes(&rich())),
        ("cut.gguf", bytes(&rich())[..700].to_vec()),
        ("not-a-tensor.gguf", Raw::header(1, 0).tensor("t", &[256], 10, 0).data(96).0),
    ]
}
