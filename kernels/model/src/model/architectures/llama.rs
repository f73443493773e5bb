//! Llama 2 and 3, SmolLM2, Mistral, and all other models whose files say `llama`.

use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("llama", &Llama);

struct Llama;

impl Decoder for Llama {}
