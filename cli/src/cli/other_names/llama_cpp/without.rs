//! Options of llama.cpp that have no counterpart.

use crate::cli::other_names::row::Means::Instead;
use crate::cli::other_names::row::Takes::Value;
use crate::cli::other_names::row::{NUMBER, Row, instead, row};

const SAMPLER: &str = "there is no such sampler; tokens are chosen with --temp, --top-k, --top-p, \
                       --min-p and the penalties";
const ROPE: &str = "positions are scaled as the model's file says; leave it out";
const NO_LORA: &str = "adapters are not supported; merge the adapter into the model, and give \
             the merged file";
const TEMPLATE: &str = "the template of the model's file is used; `lapwing run --raw` sends a \
                        prompt without it";
const ONE_GPU: &str = "devices are chosen with --device, and ops are placed on them with \
             --place";
const DRAFT_LENGTH: &str = "the drafter chooses the length of each draft; --draft names it, as in \
             --draft lookup";
const ONLY_TEXT: &str = "only text is read; leave it out";
const THOUGHTS: &str = "requests decide about thoughts; docs/serve.md lists their fields";
const MOE: &str = "--place 'layers.*.experts=cpu' keeps experts on the CPU";

/// The options that have no counterpart.
pub(crate) const WITHOUT: &[Row] = &[
    instead(
        &["-p", "--prompt"],
        "type the message in the chat, or use `lapwing run` for one prompt",
    )
    .within(&["chat"]),
    instead(
        &["-f", "--file"],
        "type the message in the chat, or use `lapwing run -f FILE` for one \
             prompt",
    )
    .within(&["chat"]),
    instead(
        &["-mu", "--model-url"],
        "download the file and give it with -m FILE, or name it on the hub: -m \
             hf:owner/repo/file.gguf",
    ),
    instead(&["-dr", "--docker-repo"], "models come from files and from the hub: -m hf:owner/repo"),
    instead(&["-hft", "--hf-token"], "the token is the value of the variable HF_TOKEN"),
    instead(
        &["--offline"],
        "set the variable HF_HUB_OFFLINE=1; a model on disk needs no network \
             anyway",
    ),
    instead(
        &["-e", "--escape"],
        "escapes in a prompt are kept as they are; let the shell write them, as \
             in $'a\\nb', or use -f FILE",
    ),
    instead(&["-bf", "--binary-file"], "a prompt is text in UTF-8: -f FILE"),
    instead(&["--in-prefix", "--in-suffix", "--in-prefix-bos"], TEMPLATE),
    instead(
        &["--prompt-cache", "--prompt-cache-all", "--prompt-cache-ro"],
        "--prefix-cache DIR keeps prompts between runs",
    ),
    instead(&["--slot-save-path"], "--prefix-cache DIR keeps prompts between starts of the server"),
    instead(&["--keep"], "the context is not shifted, so all of the prompt is kept; leave it out"),
    instead(
        &["--context-shift"],
        "an answer ends where the context is full; -c N sets a larger one",
    ),
    instead(&["-l"], "--logit-bias ID=BIAS"),
    instead(
        &[
            "--samplers",
            "--sampler-seq",
            "--sampling-seq",
            "--top-nsigma",
            "--top-n-sigma",
            "--xtc-probability",
            "--xtc-threshold",
            "--typical",
            "--typical-p",
            "--dynatemp-range",
            "--dynatemp-exp",
            "--mirostat",
            "--mirostat-lr",
            "--mirostat-ent",
            "--dry-multiplier",
            "--dry-base",
            "--dry-allowed-length",
            "--dry-penalty-last-n",
            "--dry-sequence-breaker",
            "--adaptive-target",
            "--adaptive-decay",
            "-bs",
            "--backend-sampling",
        ],
        SAMPLER,
    ),
    instead(
        &["-sp", "--special"],
        "control tokens are not printed; --json prints the ids of all tokens",
    ),
    instead(
        &["-tb", "--threads-batch"],
        "prompts and answers are computed by the same threads: -t N",
    ),
    instead(
        &[
            "-C",
            "--cpu-mask",
            "-Cb",
            "--cpu-mask-batch",
            "-Crb",
            "--cpu-range-batch",
            "--cpu-strict",
            "--cpu-strict-batch",
        ],
        "threads are pinned with --cores, as in --cores 0-3",
    ),
    instead(&["--prio", "--prio-batch"], "start the program with `nice` for that"),
    instead(
        &["--poll", "--poll-batch"],
        "--wait devices=spin|blocking|callback sets how devices wait",
    ),
    instead(&["--numa"], "--cores node0 runs the threads on one NUMA node"),
    instead(
        &["-dt", "--defrag-thold"],
        "the KV cache is in pages and needs no defragmenting; leave it out",
    ),
    instead(
        &["-nkvo", "--no-kv-offload", "--no-op-offload", "-nopo", "-nr", "--no-repack"],
        "keys, values and weights are where the ops that use them run; --place \
             moves ops to another device",
    ),
    instead(
        &["-cmoe", "--cpu-moe", "-ncmoe", "--n-cpu-moe", "--moe-cache-mib", "--moe-cache"],
        MOE,
    ),
    instead(
        &[
            "-sm",
            "--split-mode",
            "-ts",
            "--tensor-split",
            "-mg",
            "--main-gpu",
            "-ot",
            "--override-tensor",
            "-ncffn",
            "--n-cpu-ffn",
            "--rpc",
        ],
        ONE_GPU,
    ),
    instead(
        &["-fit", "--fit", "-fitt", "--fit-target", "-fitc", "--fit-ctx"],
        "as many layers run on the GPU as fit; --gpu-layers N sets another \
             number",
    ),
    instead(&["--list-devices"], "`lapwing devices`"),
    instead(&["-cl", "--cache-list"], "`lapwing models`"),
    instead(&["--completion-bash"], "`lapwing completions bash`"),
    instead(
        &["--check-tensors"],
        "`lapwing models --verify` reads the fetched models again and compares \
             their SHA-256",
    ),
    instead(
        &[
            "--override-kv",
            "--yarn-orig-ctx",
            "--yarn-ext-factor",
            "--yarn-attn-factor",
            "--yarn-beta-slow",
            "--yarn-beta-fast",
            "--rope-scaling",
            "--rope-scale",
            "--rope-freq-base",
            "--rope-freq-scale",
            "-gan",
            "--grp-attn-n",
            "-gaw",
            "--grp-attn-w",
        ],
        ROPE,
    ),
    instead(
        &[
            "--lora",
            "--lora-scaled",
            "--lora-base",
            "--control-vector",
            "--control-vector-scaled",
            "--control-vector-layer-range",
        ],
        NO_LORA,
    ),
    instead(
        &["--chat-template", "--chat-template-file", "--no-jinja", "--chat-template-kwargs"],
        TEMPLATE,
    ),
    instead(
        &[
            "--reasoning-format",
            "-rea",
            "--reasoning",
            "--reasoning-effort",
            "--reasoning-budget",
            "--reasoning-budget-message",
        ],
        THOUGHTS,
    ),
    row(&["--draft"], Value, Instead(DRAFT_LENGTH)).of(&[NUMBER]),
    instead(
        &[
            "--draft-max",
            "--draft-n",
            "--draft-min",
            "--draft-n-min",
            "--draft-p-min",
            "--draft-p-split",
            "--spec-draft-n-max",
            "--spec-draft-n-min",
        ],
        DRAFT_LENGTH,
    ),
    instead(
        &["-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft", "-devd", "--device-draft"],
        "--draft-device names the device of the draft model",
    ),
    instead(
        &[
            "-ctkd",
            "-ctvd",
            "--cache-type-k-draft",
            "--cache-type-v-draft",
            "-cd",
            "--ctx-size-draft",
            "-td",
            "--threads-draft",
        ],
        "the draft model has the settings of the model; leave it out",
    ),
    instead(
        &["--spec-type", "--lookup-cache-static", "-lcs", "--lookup-cache-dynamic", "-lcd"],
        "--draft lookup, suffix, mtp or a model's name chooses the drafter",
    ),
    instead(&["--log-file"], "notes go to stderr: 2> FILE"),
    instead(
        &["-lv", "--verbosity", "--log-verbosity", "--log-jsonl"],
        "--stats prints figures of each answer; `lapwing serve --log json` \
             writes a log in JSON",
    ),
    instead(
        &[
            "-mm",
            "--mmproj",
            "-mmu",
            "--mmproj-url",
            "--image",
            "--audio",
            "--video",
            "--media-path",
            "--image-min-tokens",
            "--image-max-tokens",
        ],
        ONLY_TEXT,
    ),
];
