//! XVERSE: a plain transformer.

use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("xverse", &Xverse);

struct Xverse;

impl Decoder for Xverse {}
