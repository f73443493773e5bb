//! HY V3: the layers of Ling's second generation; only some have experts.

use super::Architecture;
use super::bailingmoe2::BailingMoe2;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("hy_v3", &BailingMoe2);
