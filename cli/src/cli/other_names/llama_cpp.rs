//! Options of llama.cpp's programs: llama-cli, llama-server, llama-bench and the like.

mod serving;
mod without;

use super::row::Means::{
    Argument, Chunk, Holds, Instead, Kv, Option, Repository, RepositoryFile, Strategy, Words,
};
use super::row::Takes::{Nothing, Value};
use super::row::{OFF, ON, Row, SWITCH, holds, renamed, row};

pub(super) use serving::SERVING;
pub(super) use without::WITHOUT;

/// The options that mean something here, or hold anyway.
pub(crate) const KNOWN: &[Row] = &[
    // Model
    row(&["-hf", "-hfr", "--hf-repo"], Value, Repository),
    row(&["-hff", "--hf-file"], Value, RepositoryFile),
    renamed(&["-md", "--model-draft", "--spec-draft-model"], "--draft"),
    // Prompt
    row(&["-p", "--prompt"], Value, Argument).within(&["run", "tokenize", "embed"]),
    renamed(&["-sys", "--system-prompt"], "--system"),
    row(
        &["-cnv", "-i", "--interactive", "-if", "--interactive-first"],
        Nothing,
        Option("--conversation"),
    ),
    holds(&["-cnv", "--conversation", "-i", "--interactive"]).within(&["chat"]),
    row(&["-no-cnv", "--no-conversation"], Nothing, Words(&["--raw"])),
    holds(&[
        "-st",
        "--single-turn",
        "-co",
        "--color",
        "--no-display-prompt",
        "--simple-io",
        "-mli",
        "--multiline-input",
        "--no-escape",
        "--jinja",
        "--no-warmup",
        "--warmup",
        "--no-perf",
        "--no-show-timings",
    ]),
    row(&["--perf", "--show-timings"], Nothing, Words(&["--stats"])),
    row(&["-v", "--verbose", "--log-verbose"], Nothing, Words(&["--stats"])),
    holds(&["-v", "--verbose", "--progress"]).within(&["bench"]),
    // Length and sampling
    row(
        &["-n", "--predict", "--n-predict", "--max-tokens"],
        Value,
        Words(&["--max-tokens", "max"]),
    )
    .of(&["-1", "-2"])
    .within(&["run", "chat"]),
    renamed(&["--predict", "--n-predict"], "--max-tokens"),
    row(
        &["-c", "--ctx", "--ctx-size"],
        Value,
        Instead(
            "the context is a number of tokens; without -c it is the model's \
             training context, up to 8192",
        ),
    )
    .of(&["0", "-1"])
    .within(&["run", "chat", "serve"]),
    renamed(&["--ctx-size"], "--ctx"),
    renamed(&["--temperature"], "--temp"),
    row(&["-s", "--seed"], Value, Holds).of(&["-1"]).within(&["run", "chat"]),
    renamed(&["-r", "--reverse-prompt"], "--stop"),
    renamed(&["--grammar-file"], "--grammar"),
    renamed(&["-j", "-jf", "--json-schema-file"], "--json-schema"),
    // Engine
    row(&["-t", "--threads"], Value, Holds).of(&["-1"]),
    renamed(&["-Cr", "--cpu-range"], "--cores"),
    row(&["-b", "--batch-size", "-ub", "--ubatch-size"], Value, Chunk),
    row(&["-ctk", "--cache-type-k", "-ctv", "--cache-type-v"], Value, Kv),
    row(&["-fa", "--flash-attn"], SWITCH, Holds).of(ON),
    row(
        &["-fa", "--flash-attn"],
        SWITCH,
        Instead(
            "attention never stores the whole matrix of scores, and there is no \
             other way; leave it out",
        ),
    )
    .of(OFF),
    holds(&[
        "--swa-full",
        "--repack",
        "-kvo",
        "--kv-offload",
        "--no-context-shift",
        "--no-host",
        "--op-offload",
    ]),
    row(&["-lm", "--load-mode"], Value, Words(&["--mlock"])).of(&["mmap+mlock"]),
    row(&["-lm", "--load-mode"], Value, Words(&["--no-mmap", "--mlock"])).of(&["mlock"]),
    row(&["-lm", "--load-mode"], Value, Words(&["--no-mmap"])).of(&["none", "dio"]),
    row(&["-lm", "--load-mode"], Value, Holds).of(&["auto", "mmap"]),
    row(&["--no-cache-prompt"], Nothing, Words(&["--no-prefix-cache"])),
    holds(&["--cache-prompt"]),
    // Devices
    row(&["-ngl", "--n-gpu-layers"], Value, Holds).of(&["0"]),
    row(
        &["-ngl", "--n-gpu-layers"],
        Value,
        Instead(
            "a GPU is added with --device cpu+gpu=opencl, and --gpu-layers N runs \
             the last N layers on it; without a GPU leave it out",
        ),
    ),
    row(&["-dev", "--device"], Value, Holds).of(&["none"]),
    renamed(&["-dev"], "--device"),
    // Bench
    row(&["--strategy"], Value, Strategy).within(&["bench"]),
    renamed(&["--n-prompt"], "--prompt-tokens").within(&["bench"]),
    renamed(&["--n-gen"], "--max-tokens").within(&["bench"]),
    renamed(&["--n-depth"], "--depth").within(&["bench"]),
    row(&["-o", "--output"], Value, Words(&["--json"])).of(&["json", "jsonl"]).within(&["bench"]),
    row(&["-o", "--output"], Value, Holds).of(&["md"]).within(&["bench"]),
    // Server
    renamed(&["-np"], "--parallel").within(&["serve"]),
    row(&["-nocb", "--no-cont-batching"], Nothing, Words(&["--parallel", "1"])),
    renamed(&["--cors-origins"], "--cors"),
    row(&["--log-disable"], Nothing, Words(&["--log", "off"])).within(&["serve"]),
    holds(&[
        "--log-disable",
        "--log-prefix",
        "--no-log-prefix",
        "--log-timestamps",
        "--no-log-timestamps",
    ]),
    row(&["--log-colors"], SWITCH, Holds),
    holds(&[
        "-cb",
        "--cont-batching",
        "--metrics",
        "--slots",
        "--props",
        "--webui",
        "--ui",
        "--embedding",
        "--embeddings",
        "--rerank",
        "--reranking",
        "-kvu",
        "--kv-unified",
        "--no-mmproj",
    ])
    .within(&["serve"]),
    row(&["--embd-normalize"], Value, Words(&["--normalize"])).of(&["2"]),
    row(&["--embd-normalize"], Value, Holds).of(&["-1"]).within(&["embed"]),
];
