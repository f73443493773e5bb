//! Which layers and heads have keys and values of their own.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Keys and values that layers or heads share, for research. Text form: `layers=N`, `heads=N`, or both
/// with a comma between them.
///
/// Sharing over layers is that of cross-layer attention (Brandon et al., 2024), sharing over heads that of
/// multi-query and grouped-query attention (Shazeer, 2019; Ainslie et al., 2023). Models that were not
/// trained with it lose much accuracy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KvSharing {
    /// Consecutive layers that use the keys and values of the first of them; the last group has fewer if
    /// the layers are no multiple. `None`: each layer has its own.
    pub layers: Option<usize>,
    /// KV heads that remain: the first of each group of consecutive ones. `None`: all of them.
    pub heads: Option<usize>,
}

/// Keys and values cannot be shared so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KvSharingError {
    /// The text is no sharing.
    #[error(
        "'{text}' is not a sharing of keys and values (expected layers=N, heads=N or layers=N,heads=N)"
    )]
    Text {
        /// The given text.
        text: String,
    },
    /// Sharing over steps.
    #[error(
        "sharing over steps is not offered: an attention output that later positions use again would \
         be state of each sequence beside its keys and values, which chunks, prefixes and rollback \
         do not carry; give layers=N or heads=N"
    )]
    Steps,
    /// A number that the model does not allow.
    #[error("{what}={found} does not fit the model: give {expected}")]
    Number {
        /// `layers` or `heads`.
        what: &'static str,
        /// The given number.
        found: usize,
        /// The numbers that fit.
        expected: String,
    },
    /// A layer without rotary embedding would read rotated keys.
    #[error(
        "layer {layer} has no rotary embedding and cannot read the keys of layer {owner}, which has one; give another number of \
         layers"
    )]
    Rotation {
        /// The layer that would read them.
        layer: usize,
        /// The layer whose keys they are.
        owner: usize,
    },
    /// A layer would read keys of other heads than its own, or keep as many heads as a layer that has others.
    #[error(
        "layers {other} and {layer} differ in their heads: give a number of layers that keeps them apart, and no number \
         of heads"
    )]
    Unlike {
        /// The layer.
        layer: usize,
        /// The layer that it differs from.
        other: usize,
    },
    /// The graph computes keys or values by an op that cannot be cut into heads.
    #[error("the heads of this graph cannot be cut: '{role}' is not made of heads; give layers=N")]
    Heads {
        /// Role of the node.
        role: &'static str,
    },
    /// The graph's layers share already.
    #[error("this graph's layers share keys and values already; start from the model's own graph")]
    Shared,
}

impl KvSharing {
    /// Checks the numbers for a model of that many layers and KV heads.
    ///
    /// # Errors
    /// [`KvSharingError::Number`] says which numbers fit.
    pub fn check(&self, layers: usize, kv_heads: usize) -> Result<(), KvSharingError> {
        if let Some(found) = self.layers.filter(|n| !(1..=layers).contains(n)) {
            let expected = format!("1 to {layers}, its layers");
            return Err(KvSharingError::Number { what: "layers", found, expected });
        }
        let divides = |n: &usize| *n > 0 && kv_heads.is_multiple_of(*n);
        if let Some(found) = self.heads.filter(|n| !divides(n)) {
            let fit: Vec<String> = (1..=kv_heads).filter(divides).map(|n| n.to_string()).collect();
            let expected = format!("a divisor of its {kv_heads} KV heads: {}", fit.join(", "));
            return Err(KvSharingError::Number { what: "heads", found, expected });
        }
        Ok(())
    }

    /// Layers that use the same keys and values; 1 if each has its own.
    pub(crate) fn group(&self) -> usize {
        self.layers.unwrap_or(1).max(1)
    }
}

impl fmt::Display for KvSharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("layers", self.layers), ("heads", self.heads)];
        let parts = parts.into_iter().filter_map(|(what, n)| Some(format!("{what}={}", n?)));
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for KvSharing {
    type Err = KvSharingError;

    fn from_str(text: &str) -> Result<KvSharing, KvSharingError> {
        let wrong = || KvSharingError::Text { text: text.to_owned() };
        let mut sharing = KvSharing::default();
        for part in text.split(',') {
            let (what, number) = part.split_once('=').ok_or_else(wrong)?;
            let of = match what {
                "layers" => &mut sharing.layers,
                "heads" => &mut sharing.heads,
                "steps" => return Err(KvSharingError::Steps),
                _ => return Err(wrong()),
            };
            let number = number.parse().map_err(|_| wrong())?;
            if of.replace(number).is_some() {
                return Err(wrong());
            }
        }
        Ok(sharing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sharing_survives_its_text_form_and_wrong_texts_are_refused() {
        for text in ["layers=2", "heads=1", "layers=30,heads=3"] {
            assert_eq!(text.parse::<KvSharing>().expect(text).to_string(), text);
        }
        for text in
            ["", "layers", "layers=", "layers=-1", "layers=2,layers=3", "rows=2", "heads=1,"]
        {
            let error = text.parse::<KvSharing>().expect_err(text);
            assert_eq!(error, KvSharingError::Text { text: text.to_owned() });
        }
        let error = "steps=2".parse::<KvSharing>().expect_err("not offered");
        assert!(error.to_string().contains("not offered"), "{error}");
    }

    #[test]
    fn a_number_that_does_not_fit_is_an_error_that_names_those_that_do() {
        let error = |text: &str| {
            let sharing: KvSharing = text.parse().expect(text);
            sharing.check(7, 6).err().map(|error| error.to_string())
        };
        for text in ["layers=1", "layers=2", "layers=7", "heads=1", "heads=3", "heads=6"] {
            assert_eq!(error(text), None, "{text}");
        }
        for text in ["layers=0", "layers=8", "layers=18446744073709551615"] {
            assert!(error(text).expect(text).ends_with("give 1 to 7, its layers"), "{text}");
        }
        for text in ["heads=0", "heads=4", "heads=12"] {
            let error = error(text).expect(text);
            assert!(error.ends_with("a divisor of its 6 KV heads: 1, 2, 3, 6"), "{error}");
        }
    }
}
