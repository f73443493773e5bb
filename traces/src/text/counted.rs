//! Numbers with their nouns.

/// A number and what is counted: `1 run`, `3 runs`. The noun is regular; its last word gets the `s`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!(counted(0, "stage"), "0 stages");
        assert_eq!(counted(1, "stage"), "1 stage");
        assert_eq!(counted(2, "more part"), "2 more parts");
    }
}
