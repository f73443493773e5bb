//! The length of drafts as an option: a number, or as many as pay.

/// Drafted tokens of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) Option<usize>);

pub(crate) fn length(text: &str) -> Result<Length, String> {
    match text {
        "auto" => Ok(Length(None)),
        _ => match text.parse() {
            Ok(length) => Ok(Length(Some(length))),
            Err(_) => Err("it must be a number from 1 to 15, or auto".to_owned()),
        },
    }
}

impl Length {
    pub(crate) fn name(self) -> String {
        self.0.map_or("auto".to_owned(), |length| length.to_string())
    }
}
