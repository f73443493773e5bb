//! The choice of a drafter, by name or as an object.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use lapwing_actors::draft::Drafts;
pub use lapwing_actors::draft::{DRAFT_MAX, DraftStats, Drafter, PromptLookup};

/// Which drafter proposes the tokens of speculative decoding: none, one that comes with Lapwing, or one of
/// the caller's own. The default is none.
///
/// Drafts change no token: a drafted token counts only if the model itself chooses it. They change the speed.
/// A step verifies as many drafted tokens as pay, by their acceptance so far and by the measured times of
/// steps, and none where they do not.
#[derive(Clone, Default)]
pub struct DraftChoice(Option<Source>);

#[derive(Clone)]
struct Source {
    name: String,
    make: Arc<dyn Fn() -> Box<dyn Drafter> + Send + Sync>,
}

/// Names of the drafters that there are.
const NAMES: [&str; 2] = ["none", "lookup"];

/// There is no drafter of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no drafter '{name}'; it must be one of {}", NAMES.join(", "))]
pub struct UnknownDrafter {
    /// The name.
    pub name: String,
}

impl DraftChoice {
    /// No drafts: every step computes one token.
    pub fn none() -> DraftChoice {
        DraftChoice(None)
    }

    /// Prompt lookup: proposes what followed the last tokens when they occurred before
    /// ([`PromptLookup`]).
    pub fn lookup() -> DraftChoice {
        DraftChoice::made_by("lookup", PromptLookup::new)
    }

    /// A drafter of one's own; `make` is called once for each request.
    ///
    /// ```
    /// use lapwing::draft::{DraftChoice, Drafter};
    ///
    /// /// Proposes the last token again.
    /// #[derive(Debug)]
    /// struct Again;
    ///
    /// impl Drafter for Again {
    ///     fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
    ///         ids.last().map_or(Vec::new(), |id| vec![*id; most.min(3)])
    ///     }
    /// }
    ///
    /// let builder = lapwing::Engine::builder().draft(DraftChoice::made_by("again", || Again));
    /// ```
    pub fn made_by<D: Drafter + 'static>(
        name: impl Into<String>,
        make: impl Fn() -> D + Send + Sync + 'static,
    ) -> DraftChoice {
        DraftChoice(Some(Source { name: name.into(), make: Arc::new(move || Box::new(make())) }))
    }

    /// Name of the drafter, or `none`.
    pub fn name(&self) -> &str {
        self.0.as_ref().map_or(NAMES[0], |source| &source.name)
    }

    /// The drafts of a new request.
    pub(crate) fn drafts(&self) -> Option<Box<Drafts>> {
        self.0.as_ref().map(|source| Box::new(Drafts::new((source.make)())))
    }
}

impl FromStr for DraftChoice {
    type Err = UnknownDrafter;

    fn from_str(name: &str) -> Result<DraftChoice, UnknownDrafter> {
        match name {
            "none" => Ok(DraftChoice::none()),
            "lookup" => Ok(DraftChoice::lookup()),
            _ => Err(UnknownDrafter { name: name.to_owned() }),
        }
    }
}

impl fmt::Debug for DraftChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DraftChoice").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_has_a_name_and_makes_drafts_for_each_request() {
        for name in NAMES {
            assert_eq!(name.parse().map(|choice: DraftChoice| choice.name() == name), Ok(true));
        }
        assert!(DraftChoice::default().drafts().is_none());
        assert!(DraftChoice::lookup().drafts().is_some());
        let unknown = "oracle".parse::<DraftChoice>().expect_err("there is none");
        assert!(unknown.to_string().contains("none, lookup"), "{unknown}");
    }
}
