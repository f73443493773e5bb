//! Drafters by name.

use std::sync::Arc;

use lapwing_plan::registry::{ChoiceError, Chosen, Entry, Parameters, Registry};

use super::{Drafter, LOOKUP, LOOKUP_AND_SUFFIX, SUFFIX};

/// Makes the drafter of each request of an engine.
pub type MakeDrafter = Arc<dyn Fn() -> Box<dyn Drafter> + Send + Sync>;

/// A drafter that can be chosen by name: what makes its [`MakeDrafter`] for an engine.
pub type DrafterEntry = Entry<fn(&Parameters) -> MakeDrafter>;

/// Every drafter that comes with Lapwing, except draft models.
pub fn known() -> &'static [DrafterEntry] {
    KNOWN
}

/// The drafter that a text chooses, for one engine: `NAME`, or `NAME:KEY=VALUE,…`.
///
/// # Errors
/// [`ChoiceError`].
pub fn by_name(text: &str) -> Result<MakeDrafter, ChoiceError> {
    let known = Registry::new("drafter", KNOWN, &[]);
    let Chosen { entry, parameters } = known.find(text)?;
    Ok(entry.make()(&parameters))
}

const KNOWN: &[DrafterEntry] = &[LOOKUP, SUFFIX, LOOKUP_AND_SUFFIX];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_its_drafter() {
        for known in known() {
            assert!(by_name(known.name()).expect("is known")().draft(&[], 8).is_empty());
            assert_eq!(super::known().iter().filter(|k| k.name() == known.name()).count(), 1);
        }
        let wrong = by_name("lookup:x=1").map(|_| ()).expect_err("no parameter").to_string();
        assert_eq!(wrong, "the drafter lookup has no parameter 'x'; it has none");
    }

    #[test]
    fn a_share_decides_how_unlikely_a_drafted_token_may_be() {
        // 3 follows 1 2 twice, 4 once.
        let text = [5, 1, 2, 3, 6, 1, 2, 4, 7, 1, 2, 3, 8, 1, 2];
        let drafted = |name: &str| by_name(name).expect(name)().draft(&text, 1);
        for (name, expected) in [
            ("suffix", &[3][..]),
            ("suffix:share=0.6", &[3]),
            ("suffix:share=0.7", &[]),
            ("lookup+suffix:share=0.7", &[3]),
        ] {
            assert_eq!(drafted(name), expected, "{name}");
        }
    }
}
