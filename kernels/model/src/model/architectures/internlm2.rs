//! InternLM2.

use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("internlm2", &InternLm2);

struct InternLm2;

impl Decoder for InternLm2 {}
