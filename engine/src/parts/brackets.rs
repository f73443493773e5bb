//! Brackets and quotation marks of JSON.

/// Open brackets and quotes of a JSON value.
#[derive(Debug, Default)]
pub(super) struct Brackets {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

impl Brackets {
    /// Those inside of so many brackets.
    pub(super) fn within(depth: usize) -> Brackets {
        Brackets { depth, ..Brackets::default() }
    }

    /// The end of the value in `text`, which follows the text of earlier calls.
    pub(super) fn close(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_text,
                b'"' => self.is_text = !self.is_text,
                _ if self.is_text => continue,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => continue,
            }
            if self.depth == 0 && !self.is_text {
                return Some(at + 1);
            }
        }
        None
    }
}

/// The end of the JSON value that begins at `at`; `None` if it is not complete.
pub(super) fn value_end(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let end = match rest.as_bytes().first()? {
        b'"' | b'{' | b'[' => Brackets::default().close(rest),
        _ => rest.find(|c: char| c.is_whitespace() || ",]}".contains(c)),
    };
    end.map(|end| at + end)
}
