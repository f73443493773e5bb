//! A start that packs weights into a mapped file takes no more memory than its buffer. In a process of its own, because it limits the memory
//! of the process.
#![cfg(all(target_os = "linux", not(loom)))]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lapwing_kernels::cpu::{
    BindError, CacheWriteError, Cpu, Isa, MustMap, PackCache, PackError, PackedMemory, Weights,
    keep_packed, limit_packed,
};
use lapwing_kernels::formats::DType;
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::{GgufWriter, MetaValue, WeightFile};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const WIDTH: usize = 1024;
const FFN: usize = 32 << 10;
const VOCAB: usize = 100;
/// Bytes of the packed weights, at least.
const BYTES: u64 = 3 * (WIDTH * FFN * 2) as u64;
/// Bytes that packing may take: its buffer of 32 MiB, and stacks and buffers of threads.
const ROOM: u64 = 64 << 20;

/// Writes a model with one layer, all of whose values are 0.
fn write_model(path: &Path) {
    let mut writer = GgufWriter::new();
    writer.meta("general.architecture", "llama");
    writer.meta("llama.context_length", 64u32);
    writer.meta("llama.vocab_size", VOCAB as u32);
    writer.meta("tokenizer.ggml.model", "no_vocab");
    for (key, value) in [
        ("block_count", 1),
        ("embedding_length", WIDTH),
        ("feed_forward_length", FFN),
        ("attention.head_count", 16),
        ("rope.dimension_count", 64),
    ] {
        writer.meta(&format!("llama.{key}"), value as u32);
    }
    writer.meta("llama.attention.layer_norm_rms_epsilon", MetaValue::F32(1e-5));
    for norm in ["output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"] {
        writer.tensor_later(&format!("{norm}.weight"), &[WIDTH], DType::F32);
    }
    writer.tensor_later("token_embd.weight", &[WIDTH, VOCAB], DType::F16);
    for (name, shape) in [
        ("attn_q", [WIDTH, WIDTH]),
        ("attn_k", [WIDTH, WIDTH]),
        ("attn_v", [WIDTH, WIDTH]),
        ("attn_output", [WIDTH, WIDTH]),
        ("ffn_gate", [WIDTH, FFN]),
        ("ffn_up", [WIDTH, FFN]),
        ("ffn_down", [FFN, WIDTH]),
    ] {
        writer.tensor_later(&format!("blk.0.{name}.weight"), &shape, DType::F16);
    }
    writer.write_zeros(&mut fs::File::create(path).expect("a file")).expect("written");
}

/// Bytes of private memory that may be written, which a process can limit.
fn data_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).expect("data");
    line.trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// The weights of the model, in the way that the cache says.
fn weights(cpu: &Cpu, model: &Path, cache: &PackCache) -> Result<Arc<Weights>, BindError> {
    loop {
        let file = WeightFile::open(model).expect("a model");
        let graph = Model::from_weights(&file).expect("a model").graph;
        keep_packed(&file, cache.clone());
        if cache.memory == PackedMemory::Mapped {
            limit_packed(&file, || Some(0));
        }
        match Weights::of(cpu, &graph, &file) {
            Err(BindError::Pack(PackError::Beyond {
                why: MustMap::NotWritten(CacheWriteError::JustChanged),
                ..
            })) => {}
            other => return other,
        }
    }
}

#[test]
fn packing_into_a_mapped_file_takes_no_more_memory_than_its_buffer() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model.gguf");
    write_model(&model);
    let cache = |name: &str, memory| PackCache {
        path: folder.path().join(name),
        bytes_max: u64::MAX,
        memory,
    };
    let (mapped, read) =
        (cache("mapped.lwp", PackedMemory::Mapped), cache("read.lwp", PackedMemory::Read));
    let cpu = Cpu::new(2, Isa::best());
    let before = getrlimit(Resource::Data);
    let limit = Rlimit { current: Some(data_bytes() + ROOM), maximum: before.maximum };
    setrlimit(Resource::Data, limit).expect("a limit");
    match weights(&cpu, &model, &mapped) {
        Ok(weights) => assert!(weights.packed_bytes() as u64 >= BYTES),
        Err(BindError::Pack(PackError::Beyond { why: why @ MustMap::NotMapped(_), .. })) => {
            eprintln!("not mapped here: {why}");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    let error = weights(&cpu, &model, &read).expect_err("less memory than weights");
    assert!(matches!(error, BindError::Pack(PackError::Memory { .. })), "{error}");
    setrlimit(Resource::Data, before).expect("no limit");
    weights(&cpu, &model, &read).expect("enough memory");
    let [mapped, read] = [&mapped, &read].map(|cache| fs::read(&cache.path).expect("a file"));
    assert!(mapped.len() as u64 > BYTES && mapped == read);
}
