//! Names of drafters.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::{DraftChoice, DraftModelChoice, DraftWeights};

/// Names of the drafters that there are.
pub(super) const NAMES: [&str; 4] = ["none", "lookup", "suffix", "lookup+suffix"];

/// Prefix of the target's own weights with fewer bits.
pub(super) const OWN: &str = "self:";

/// There is no drafter of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no drafter '{name}'; it must be one of {}, a draft model (a .gguf file or a model's name), or \
     self:FORM for the model itself with fewer bits, such as self:q4_0",
    NAMES.join(", ")
)]
pub struct UnknownDrafter {
    /// The name.
    pub name: String,
}

impl FromStr for DraftChoice {
    type Err = UnknownDrafter;

    /// `none`, `lookup`, `suffix`, `lookup+suffix`, `self:FORM`, the path of a .gguf file, or the name of a model that can be
    /// fetched.
    fn from_str(name: &str) -> Result<DraftChoice, UnknownDrafter> {
        let unknown = || UnknownDrafter { name: name.to_owned() };
        match name {
            "none" => Ok(DraftChoice::none()),
            "lookup" => Ok(DraftChoice::lookup()),
            "suffix" => Ok(DraftChoice::suffix()),
            "lookup+suffix" => Ok(DraftChoice::lookup_and_suffix()),
            _ => match name.strip_prefix(OWN) {
                Some(format) => format.parse().map(DraftChoice::own).map_err(|_| unknown()),
                None if is_model(name) => Ok(DraftChoice::model(name)),
                None => Err(unknown()),
            },
        }
    }
}

/// Whether a text names a model: as a file, or one that can be fetched.
fn is_model(name: &str) -> bool {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"));
    #[cfg(feature = "fetch")]
    let is_known = name.parse::<crate::models::ModelName>().is_ok();
    #[cfg(not(feature = "fetch"))]
    let is_known = false;
    is_file || path.is_file() || is_known
}

impl fmt::Display for DraftChoice {
    /// The text that parses to the same choice, if it is one of Lapwing's drafters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.draft_model() {
            Some(DraftModelChoice { weights: DraftWeights::Other(model), .. }) => {
                f.write_str(model)
            }
            _ => f.write_str(self.name()),
        }
    }
}

impl fmt::Debug for DraftChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DraftChoice").field(&self.to_string()).finish()
    }
}
