//! ChatGLM 3 and GLM 4 of 2024: joined matrices, and a half of each head is rotated.

use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("chatglm", &Chatglm);

struct Chatglm;

impl Decoder for Chatglm {}
