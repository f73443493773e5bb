//! Options of llama-server and llama-bench that have no counterpart.

use crate::cli::other_names::row::Means::Instead;
use crate::cli::other_names::row::Takes::Value;
use crate::cli::other_names::row::{Row, instead, row};

const PROXY: &str = "put a reverse proxy in front of the server for that";

/// The options.
pub(crate) const SERVING: &[Row] = &[
    instead(
        &["-v", "--verbose", "--log-verbose"],
        "--log-prompts adds prompts and answers to the log, and --log json \
             writes it in JSON",
    )
    .within(&["serve"]),
    instead(&["-a", "--alias"], "-m NAME=MODEL gives a model another name").within(&["serve"]),
    instead(&["--api-key-file"], "--key-file FILE, with NAME KEY on each line"),
    instead(
        &["--ssl-key-file", "--ssl-cert-file", "--path", "--api-prefix", "--reuse-port"],
        PROXY,
    ),
    instead(&["-to", "--timeout"], "timeout_s = SECONDS in the file of --config")
        .within(&["serve"]),
    instead(&["--threads-http"], "connections_max = N in the file of --config limits connections"),
    instead(
        &[
            "--cache-reuse",
            "-cram",
            "--cache-ram",
            "-ctxcp",
            "--ctx-checkpoints",
            "--swa-checkpoints",
        ],
        "prompts that begin alike share keys and values by themselves; leave it \
             out",
    ),
    instead(&["-no-kvu", "--no-kv-unified"], "all requests share one cache of pages; leave it out"),
    instead(
        &["--no-slots", "--no-webui", "--no-ui"],
        "the paths are always there; a key (--key-file) keeps others out",
    ),
    instead(
        &["--models-dir", "--models-preset", "--models-max"],
        "-m NAME=MODEL for each model, and --memory MB unloads the one not used \
             for longest",
    ),
    instead(&["--sleep-idle-seconds"], "--keep-alive SECONDS"),
    instead(
        &["--tools", "--mcp-servers-config", "--mcp-servers-json", "-ag", "--agent"],
        "clients send their tools with each request",
    ),
    // Bench
    row(
        &["-pg"],
        Value,
        Instead(
            "prompt and generation are timed apart: -p 512 -n 128, and -n 128 -d \
             512 generates after a prompt of 512 tokens",
        ),
    ),
    row(
        &["-o", "--output"],
        Value,
        Instead("-o names a file; the table goes to stdout, and --json prints JSON"),
    )
    .of(&["csv", "sql"])
    .within(&["bench"]),
    instead(&["-oe", "--output-err"], "the table goes to stdout, and --json prints JSON"),
    instead(&["--delay"], "start the command again after a pause").within(&["bench"]),
    instead(&["-embd"], "`lapwing embed`").within(&["bench"]),
];
