//! Reports attention masks, as text and as JSON.

use lapwing::AttentionRule;

use super::session::Session;

/// The text form of the masks in force, one for each run of layers.
pub(crate) fn texts(rules: &[AttentionRule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

/// A line of text about these masks; empty if none are given.
pub(crate) fn line(masks: Option<&[String]>) -> String {
    masks.map_or_else(String::new, |masks| format!("attention: {}\n", masks.join(" ")))
}

/// Says on stderr which masks are in force, if any are given.
pub(crate) fn note(rules: Option<&[AttentionRule]>, session: &Session) {
    if let Some(rules) = rules {
        session.note(line(Some(&texts(rules))).trim_end());
    }
}
