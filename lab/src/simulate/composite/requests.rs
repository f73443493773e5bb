//! Requests as a short text.

use crate::load::LoadRequest;
use crate::simulate::error::SimulateError;

/// Reads requests: `[COUNTx]PROMPT+ANSWER[@TIME]`, separated by commas, such as `2x30+150,860+1@1s`. Numbers are tokens; without a
/// time, a request arrives at the start. Requests are in order of their arrival.
///
/// # Errors
/// [`SimulateError::BadValue`] with the part that is wrong.
pub fn requests(text: &str) -> Result<Vec<LoadRequest>, SimulateError> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        let wrong = || SimulateError::BadValue {
            key: "requests".to_owned(),
            value: part.to_owned(),
            expected: "it must be [COUNTx]PROMPT+ANSWER[@TIME], as in 2x30+150 or 860+1@1s"
                .to_owned(),
        };
        let found = one(part).filter(|found| found.count > 0 && found.count <= 1000);
        let One { count, prompt, answer, at } = found.ok_or_else(wrong)?;
        let request = LoadRequest::new(at, "", prompt, answer);
        request.check().map_err(|_| wrong())?;
        all.extend(std::iter::repeat_n(request, count));
    }
    all.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok(all)
}

/// Equal requests.
struct One {
    count: usize,
    prompt: usize,
    answer: usize,
    at: f64,
}

fn one(part: &str) -> Option<One> {
    let (tokens, at) = match part.split_once('@') {
        None => (part, 0.0),
        Some((tokens, time)) => (tokens, seconds(time)?),
    };
    let (count, tokens) = match tokens.split_once('x') {
        None => (1, tokens),
        Some((count, tokens)) => (count.parse().ok()?, tokens),
    };
    let (prompt, answer) = tokens.split_once('+')?;
    Some(One { count, prompt: prompt.parse().ok()?, answer: answer.parse().ok()?, at })
}

/// The seconds of a time with its unit, as in `250ms` or `1s`.
pub(crate) fn seconds(time: &str) -> Option<f64> {
    let (number, unit) = match time.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (time.strip_suffix('s')?, 1.0),
    };
    Some(number.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_ordered() {
        let found = requests("860+1@1s, 2x30+150,9+2@500ms").expect("requests");
        let found: Vec<_> =
            found.iter().map(|it| (it.at, it.prompt_tokens, it.output_tokens)).collect();
        assert_eq!(found, [(0.0, 30, 150), (0.0, 30, 150), (0.5, 9, 2), (1.0, 860, 1)]);
        for wrong in ["", "30", "30+0", "0+3", "0x3+3", "x3+3", "3+3@", "3+3@1", "3+3@-1s", "3+3,"]
        {
            let error = requests(wrong).expect_err(wrong).to_string();
            assert!(error.contains("requests"), "{error}");
        }
    }
}
