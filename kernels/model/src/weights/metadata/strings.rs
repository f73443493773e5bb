//! Iterator over the strings of an array, checked for UTF-8, without copies.

use crate::weights::value::Strings;

/// Strings that have been checked to be UTF-8.
#[derive(Clone)]
pub(super) struct Utf8Strings<'a>(Strings<'a>);

impl<'a> Utf8Strings<'a> {
    /// Checks all strings.
    ///
    /// # Errors
    /// The index of the first string that is not UTF-8.
    pub(super) fn check(strings: Strings<'a>) -> Result<Utf8Strings<'a>, usize> {
        match strings.clone().position(|s| std::str::from_utf8(s).is_err()) {
            Some(index) => Err(index),
            None => Ok(Utf8Strings(strings)),
        }
    }
}

impl<'a> Iterator for Utf8Strings<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0.next().and_then(|s| std::str::from_utf8(s).ok())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Utf8Strings<'_> {}
