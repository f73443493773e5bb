//! Points that are marked in a region plot.

/// A named point.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) name: String,
    pub(super) acceptance: f64,
    pub(super) draft_time: f64,
}

/// Parses `NAME=ACCEPTANCE,TIME`.
pub(super) fn mark(text: &str) -> Result<Mark, String> {
    let expected = || "expected NAME=ACCEPTANCE,DRAFT_TIME, such as AMUSD=0.95,0.44".to_owned();
    let (name, point) = text.split_once('=').ok_or_else(expected)?;
    let (acceptance, draft_time) = point.split_once(',').ok_or_else(expected)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match (number(acceptance), number(draft_time)) {
        (Some(acceptance), Some(draft_time)) if !name.is_empty() => {
            Ok(Mark { name: name.to_owned(), acceptance, draft_time })
        }
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_a_name_and_two_numbers() {
        let found = mark("AMUSD=0.95, 0.44").expect("a mark");
        assert_eq!((found.acceptance, found.draft_time), (0.95, 0.44));
        for wrong in ["AMUSD", "AMUSD=0.9", "=0.9,0.4", "a=x,0.4", "a=0.9,inf"] {
            assert!(mark(wrong).is_err(), "{wrong}");
        }
    }
}
