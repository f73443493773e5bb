//! Options of `vllm serve` and of mistral.rs's server.

use super::row::Means::{Holds, Instead, Words};
use super::row::Takes::{Nothing, Value};
use super::row::{Row, holds, holds_with_value, instead, renamed, row};

/// The options.
pub(crate) const ROWS: &[Row] = &[
    renamed(&["--max-model-len", "--max-seq-len"], "--ctx"),
    renamed(&["--max-num-seqs", "--max-seqs"], "--parallel"),
    renamed(&["--max-num-batched-tokens"], "--chunk"),
    renamed(&["--allowed-origins"], "--cors"),
    renamed(&["--serve-ip"], "--host"),
    row(
        &["--no-enable-prefix-caching", "--no-prefix-caching"],
        Nothing,
        Words(&["--no-prefix-cache"]),
    ),
    row(&["--disable-log-requests"], Nothing, Words(&["--log", "off"])),
    holds(&[
        "--enable-prefix-caching",
        "--enable-chunked-prefill",
        "--trust-remote-code",
        "--enforce-eager",
        "--enable-auto-tool-choice",
        "--no-enable-log-requests",
        "--paged-attn",
    ]),
    holds_with_value(&["--tool-call-parser", "--uvicorn-log-level", "--generation-config"])
        .within(&["serve"]),
    row(&["--dtype", "--quantization", "-q"], Value, Holds).of(&["auto", "gguf", "none"]),
    row(&["--kv-cache-dtype"], Value, Holds).of(&["auto"]),
    row(&["--kv-cache-dtype"], Value, Instead("keys and values are f32, f16 or int8: --kv int8")),
    instead(
        &["--dtype", "--quantization", "-q", "--isq"],
        "weights are used as the file has them; --requant FORM makes them \
             smaller, as in --requant q8_0",
    ),
    instead(&["--kv-events-config"], "--kv-events ADDRESS publishes KV events; docs/kv_events.md"),
    instead(&["--served-model-name"], "-m NAME=MODEL gives a model another name"),
    instead(
        &[
            "-tp",
            "--tensor-parallel-size",
            "-pp",
            "--pipeline-parallel-size",
            "-dp",
            "--data-parallel-size",
            "--num-device-layers",
            "-n",
        ],
        "devices are added with --device, and --strategy divides the work \
             between them",
    )
    .within(&["serve"]),
    instead(
        &["--gpu-memory-utilization", "--swap-space", "--cpu-offload-gb"],
        "the KV cache takes what its requests need; --memory MB limits loaded \
             models",
    ),
    instead(
        &["--reasoning-parser"],
        "thoughts are recognised by the model's own marks; leave it out",
    ),
    instead(
        &["--speculative-config", "--speculative-model", "--num-speculative-tokens"],
        "--draft lookup, suffix or a model's name drafts tokens",
    ),
    instead(&["--download-dir"], "the variable LAPWING_CACHE names the folder of fetched models"),
    instead(
        &["--revision", "--tokenizer", "--hf-config-path"],
        "a name on the hub may end in a revision, and the file has its own \
             tokenizer: hf:owner/repo@REVISION",
    ),
    instead(
        &["--task", "--runner", "--convert"],
        "every model answers, and embeds too; leave it out",
    )
    .within(&["serve"]),
];
