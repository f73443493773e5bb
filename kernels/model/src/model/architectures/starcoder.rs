//! StarCoder and SantaCoder: the layers of GPT-2.

use super::Architecture;
use super::gpt2::Gpt2;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("starcoder", &Gpt2);
