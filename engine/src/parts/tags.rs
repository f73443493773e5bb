//! Tags in text that arrives piece by piece.

/// Text up to a tag.
pub(super) struct Until {
    /// The text before the tag, or all that cannot be a part of it.
    pub(super) text: String,
    pub(super) is_found: bool,
}

/// Takes the text before `tag` from `held`, and the tag.
pub(super) fn until(held: &mut String, tag: &str) -> Until {
    match held.find(tag) {
        Some(at) => {
            let text = held[..at].to_owned();
            held.drain(..at + tag.len());
            Until { text, is_found: true }
        }
        None => {
            let certain = held.len() - partial_end(held, tag);
            Until { text: held.drain(..certain).collect(), is_found: false }
        }
    }
}

/// Number of bytes at the end of `text` that may be the beginning of `tag`.
fn partial_end(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}
