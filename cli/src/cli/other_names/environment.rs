//! Variables of other programs, which are not read.

use crate::cli::session::Session;

/// Each variable of a server, and what sets the same here.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("OLLAMA_HOST", "--listen or LAPWING_LISTEN"),
    ("OLLAMA_MODELS", "LAPWING_CACHE"),
    ("OLLAMA_KEEP_ALIVE", "--keep-alive SECONDS"),
    ("OLLAMA_NUM_PARALLEL", "--parallel N"),
    ("OLLAMA_MAX_QUEUE", "--requests N"),
    ("OLLAMA_CONTEXT_LENGTH", "--ctx N"),
    ("OLLAMA_ORIGINS", "--cors ORIGIN"),
    ("OLLAMA_KV_CACHE_TYPE", "--kv TYPE"),
    ("LLAMA_API_KEY", "--api-key KEY or LAPWING_KEY_FILE"),
    ("LLAMA_ARG_MODEL", "-m MODEL"),
    ("LLAMA_ARG_HF_REPO", "-m hf:owner/repo"),
    ("LLAMA_ARG_HOST", "--host ADDRESS"),
    ("LLAMA_ARG_PORT", "--port N"),
    ("LLAMA_ARG_CTX_SIZE", "--ctx N"),
    ("LLAMA_ARG_N_PARALLEL", "--parallel N"),
    ("LLAMA_ARG_THREADS", "--threads N"),
    ("LLAMA_ARG_N_GPU_LAYERS", "--gpu-layers N"),
    ("VLLM_API_KEY", "--api-key KEY or LAPWING_KEY_FILE"),
];

/// Says which variables of other programs are set, so that none of them is ignored without a word.
pub(crate) fn note_unread(session: &Session) {
    for (variable, here) in VARIABLES {
        if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
            session.note(&format!("note: {variable} is not read; {here} sets the same"));
        }
    }
}
