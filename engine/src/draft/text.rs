//! The choice of a drafter as text.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::{ChoiceError, DraftChoice, DraftModelChoice, DraftWeights, by_name};

/// Name of the choice of no drafter.
pub(super) const NONE: &str = "none";

/// Name of the choice of what the model's file has.
pub(super) const AUTO: &str = "auto";

/// Name of the model's own layer that predicts a further token.
pub(super) const PREDICTOR: &str = "mtp";

/// Prefix of the target's own weights with fewer bits.
pub(super) const OWN: &str = "self:";

/// What drafts without a name of its own.
const MODELS: &str = "auto for what the model's file has, mtp for a layer of the model's file that predicts a second token, a draft model (a .gguf file or a \
                      model's name), or self:FORM for the model itself with fewer bits, \
                      such as self:q4_0";

impl FromStr for DraftChoice {
    type Err = ChoiceError;

    /// `auto`, `none`, `mtp`, a drafter of [`known`](super::known) with or without parameters, `self:FORM`, the path of a .gguf file, or the name
    /// of a model that can be fetched.
    fn from_str(text: &str) -> Result<DraftChoice, ChoiceError> {
        if text == NONE {
            return Ok(DraftChoice::none());
        }
        if text == AUTO {
            return Ok(DraftChoice::of_file());
        }
        if text == PREDICTOR {
            return Ok(DraftChoice::predictor());
        }
        let (kind, known, nearest) = match by_name(text) {
            Ok(make) => return Ok(DraftChoice::drafter(text, make)),
            Err(ChoiceError::Unknown { kind, known, nearest, .. }) => (kind, known, nearest),
            Err(wrong) => return Err(wrong),
        };
        let own = text.strip_prefix(OWN).and_then(|format| format.parse().ok());
        match own.map(DraftChoice::own) {
            Some(own) => Ok(own),
            None if !text.starts_with(OWN) && is_model(text) => Ok(DraftChoice::model(text)),
            None => {
                let known = format!("{NONE}, {known}, {MODELS}");
                Err(ChoiceError::Unknown { kind, name: text.to_owned(), known, nearest })
            }
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
