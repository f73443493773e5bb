//! Tags in text that arrives piece by piece.

/// Text up to a tag.
pub(super) struct Until {
    /// The text before the tag, or all that cannot be a part of it.
    pub(super) text: String,
    pub(super) is_found: bool,
}

/// Takes the text before `tag` from `held`, and the tag.
pub(super) fn until(held: &mut String, tag: &str) -> Until {
    let UntilOne { text, found } = until_one(held, &[tag]);
    Until { text, is_found: found.is_some() }
}

/// Text up to one of several tags.
pub(super) struct UntilOne {
    /// The text before the tag, or all that cannot be a part of one.
    pub(super) text: String,
    /// Number of the tag.
    pub(super) found: Option<usize>,
}

/// Takes the text before the first of these tags from `held`, and the tag. Of tags that begin at the same place it is the first.
pub(super) fn until_one(held: &mut String, tags: &[&str]) -> UntilOne {
    let places =
        tags.iter().enumerate().filter_map(|(number, tag)| Some((held.find(tag)?, number)));
    match places.min() {
        Some((at, number)) => {
            let text = held[..at].to_owned();
            held.drain(..at + tags[number].len());
            UntilOne { text, found: Some(number) }
        }
        None => {
            let partial = tags.iter().map(|tag| partial_end(held, tag)).max().unwrap_or_default();
            let certain = held.len() - partial;
            UntilOne { text: held.drain(..certain).collect(), found: None }
        }
    }
}

/// Number of bytes at the end of `text` that may be the beginning of `tag`.
fn partial_end(text: &str, tag: &str) -> usize {
    let (text, tag) = (text.as_bytes(), tag.as_bytes());
    (1..tag.len()).rev().find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}
