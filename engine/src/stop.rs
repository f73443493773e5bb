//! Finds stop texts in a stream of text.

/// Searches for stop texts in text that arrives in pieces, and holds back text that may be the
/// beginning of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopSearch {
    stops: Vec<String>,
    held: String,
}

impl StopSearch {
    /// Searches for `stops`; empty ones are ignored.
    pub(crate) fn new(stops: Vec<String>) -> StopSearch {
        let stops = stops.into_iter().filter(|s| !s.is_empty()).collect();
        StopSearch { stops, held: String::new() }
    }

    /// Takes the next piece; returns the text that is certain, and the stop text found, if any. The
    /// earliest match wins; among equally early ones, the longest.
    pub(crate) fn push(&mut self, piece: &str) -> (String, Option<String>) {
        self.held.push_str(piece);
        let found = self
            .stops
            .iter()
            .filter_map(|s| Some((self.held.find(s.as_str())?, s)))
            .min_by_key(|(at, s)| (*at, std::cmp::Reverse(s.len())));
        if let Some((at, stop)) = found {
            let stop = stop.clone();
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), Some(stop));
        }
        let rest = self.held.split_off(self.held.len() - self.longest_beginning());
        (std::mem::replace(&mut self.held, rest), None)
    }

    /// The text held back so far.
    pub(crate) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Length of the longest suffix of the held text that is a prefix of a stop text.
    fn longest_beginning(&self) -> usize {
        let starts = self.held.char_indices().map(|(at, _)| &self.held[at..]);
        starts
            .filter(|tail| self.stops.iter().any(|s| s.starts_with(tail)))
            .map(str::len)
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let mut search = StopSearch::new(stops.iter().map(|s| (*s).to_owned()).collect());
        let mut text = String::new();
        for piece in pieces {
            let (certain, found) = search.push(piece);
            text.push_str(&certain);
            if found.is_some() {
                return (text, found);
            }
        }
        text.push_str(&search.rest());
        (text, None)
    }

    #[test]
    fn stop_texts_are_found_across_pieces_and_nothing_is_lost() {
        type Row<'a> = (&'a [&'a str], &'a [&'a str], &'a str, Option<&'a str>);
        let rows: [Row<'_>; 8] = [
            (&[], &["a", "b"], "ab", None),
            (&["END"], &["x E", "N", "D y"], "x ", Some("END")),
            (&["END"], &["x E", "N", "d y"], "x ENd y", None),
            (&["aab"], &["aa", "ab"], "a", Some("aab")),
            (&["é!"], &["caf", "é", "?"], "café?", None),
            (&["b", "abc"], &["a", "b"], "a", Some("b")),
            (&["ab", "abc"], &["abc"], "", Some("abc")),
            (&[""], &["x"], "x", None),
        ];
        for (stops, pieces, text, found) in rows {
            let expected = (text.to_owned(), found.map(str::to_owned));
            assert_eq!(run(stops, pieces), expected, "{stops:?} in {pieces:?}");
        }
    }

    #[test]
    fn text_is_held_back_only_while_it_may_become_a_stop() {
        let mut search = StopSearch::new(vec!["</s>".to_owned()]);
        assert_eq!(search.push("hi <"), ("hi ".to_owned(), None));
        assert_eq!(search.push("/"), (String::new(), None));
        assert_eq!(search.push("b>"), ("</b>".to_owned(), None));
        assert_eq!(search.rest(), "");
    }
}
