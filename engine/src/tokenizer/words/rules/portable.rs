//! Steps as expressions for backtracking engines with look-ahead: Oniguruma and fancy-regex, with which the `tokenizers`
//! library splits text.

use super::{Cut, Step};

/// White space up to the last character before a word.
const SPACES: &str = r"\s+(?!\S)|\s+";

impl Step {
    /// One expression that matches the words of this step; text between matches is kept as it is.
    ///
    /// General categories are those of the engine's Unicode version.
    pub(in crate::tokenizer) fn portable(&self) -> String {
        let pattern = with_chars(self.pattern);
        match self.cut {
            Cut::Words => pattern,
            Cut::WordsAndSpaces => format!("{pattern}|{SPACES}"),
            Cut::WordsAndSpacesByPowers => {
                let runs = (0..=9).rev().map(|power| format!(r"\s{{{}}}(?!\S)", 1 << power));
                let runs = runs.collect::<Vec<_>>().join("|");
                format!(r"{pattern}|{runs}|\s+")
            }
            Cut::Thousands => {
                let (digits, border) = match pattern.strip_suffix(r"\b") {
                    Some(digits) => (digits, Some(r"\b")),
                    None => (pattern.as_str(), None),
                };
                let digit = digits.strip_suffix('+').unwrap_or(digits);
                let border = border.map_or_else(|| format!("(?!{digit})"), str::to_owned);
                format!("{digit}{{1,3}}(?=(?:{digit}{{3}})*{border})")
            }
        }
    }
}

/// A pattern with characters in the place of their numbers, and with the end of the text in the place of that of a line.
fn with_chars(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        written.push_str(&rest[..at]);
        let escape = &rest[at..];
        let (number, length) = if let Some(number) = escape.strip_prefix(r"\u{") {
            let end = number.find('}').unwrap_or(number.len());
            (&number[..end], end + 4)
        } else if let Some(number) = escape.strip_prefix(r"\x") {
            (&number[..2], 4)
        } else {
            ("", 2)
        };
        let char = u32::from_str_radix(number, 16).ok().and_then(char::from_u32);
        match char {
            Some(char) => written.push(char),
            None => written.push_str(&escape[..length]),
        }
        rest = &escape[length..];
    }
    written.push_str(rest);
    match written.strip_suffix('$') {
        Some(begin) => format!(r"{begin}\z"),
        None => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_expressions_with_look_ahead() {
        let step = |pattern, cut| Step { pattern, cut }.portable();
        assert_eq!(step(r"[\u{800}-\x7E]\u{10FFFF}", Cut::Words), "[\u{800}-~]\u{10FFFF}");
        assert_eq!(step(r"\s+$", Cut::Words), r"\s+\z");
        assert_eq!(step(r"\\\[a", Cut::WordsAndSpaces), r"\\\[a|\s+(?!\S)|\s+");
        assert_eq!(step(r"\d+\b", Cut::Thousands), r"\d{1,3}(?=(?:\d{3})*\b)");
        assert_eq!(step(r"\p{N}+", Cut::Thousands), r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))");
        let powers = step("a", Cut::WordsAndSpacesByPowers);
        assert!(powers.starts_with(r"a|\s{512}(?!\S)|\s{256}(?!\S)|"), "{powers}");
        assert!(powers.ends_with(r"|\s{1}(?!\S)|\s+"), "{powers}");
    }

    #[test]
    fn every_pattern_is_free_of_what_engines_read_differently() {
        for step in super::super::table::ALL.iter().flat_map(|rules| rules.steps) {
            let portable = step.portable();
            assert!(!portable.contains("--") && !portable.contains(r"\u"), "{portable}");
            assert!(
                !portable.contains('$') || portable.contains(r"\$") || portable.contains("#$"),
                "{portable}"
            );
        }
    }
}
