//! Requests as a short text.

use std::str::FromStr;

use lapwing_actors::policy::Urgency;

use crate::load::{LoadClient, LoadRequest, Rate, generate};
use crate::simulate::error::SimulateError;

/// Most requests of a text.
const MOST: usize = 1 << 16;

/// Requests as a text: `[NAME:][COUNTx]PROMPT+ANSWER[@TIME][^PRIORITY]`, separated by commas, such as `2x30+150,860+1@1s`. Numbers are
/// tokens; without a time, a request arrives at the start. In place of a time, `@RATE/min*TIME` is a Poisson process: `chat:213+70@3/min*15min`
/// are the requests of 15 minutes, three a minute on average; the rate may also be in `/s` and `/h`. The name is that of the client. The
/// greater priority is more urgent, below 0 is background work, and `^background` is -1.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestText {
    parts: Vec<Part>,
}

/// Requests that are alike.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    request: LoadRequest,
    arrivals: Arrivals,
}

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrivals {
    /// So many at the time of the request.
    Together(usize),
    /// At random.
    Poisson {
        /// Requests per second.
        rate: f64,
        /// Seconds in which they arrive.
        duration: f64,
    },
}

/// Reads requests; those that arrive at random do so as with the seed 0. They are in order of their arrival.
///
/// # Errors
/// [`SimulateError::BadValue`] with the part that is wrong.
pub fn requests(text: &str) -> Result<Vec<LoadRequest>, SimulateError> {
    Ok(text.parse::<RequestText>()?.requests(0))
}

impl RequestText {
    /// The requests, in order of arrival. The same seed gives the same arrivals, and each part has its own random numbers.
    pub fn requests(&self, seed: u64) -> Vec<LoadRequest> {
        let mut all = Vec::new();
        for (number, Part { request, arrivals }) in (0..).zip(&self.parts) {
            match *arrivals {
                Arrivals::Together(count) => {
                    all.extend(std::iter::repeat_n(request.clone(), count))
                }
                Arrivals::Poisson { rate, duration } => {
                    let LoadRequest { client, prompt_tokens, output_tokens, priority, .. } =
                        request;
                    let rate = Rate::Constant(rate);
                    let client = LoadClient::new(client, rate, *prompt_tokens, *output_tokens);
                    let seed = seed.wrapping_mul(1_000_003).wrapping_add(number);
                    let made = generate(&[client], duration, seed).into_iter();
                    all.extend(made.map(|made| LoadRequest { priority: *priority, ..made }));
                }
            }
        }
        all.sort_by(|a, b| a.at.total_cmp(&b.at));
        all
    }

    /// Number of requests, on average.
    fn mean(&self) -> f64 {
        let count = |part: &Part| match part.arrivals {
            Arrivals::Together(count) => count as f64,
            Arrivals::Poisson { rate, duration } => rate * duration,
        };
        self.parts.iter().map(count).sum()
    }
}

impl FromStr for RequestText {
    type Err = SimulateError;

    fn from_str(text: &str) -> Result<RequestText, SimulateError> {
        let wrong = |part: &str| {
            SimulateError::BadValue {
            key: "requests".to_owned(),
            value: part.to_owned(),
            expected: "it must be [NAME:][COUNTx]PROMPT+ANSWER[@TIME|@RATE/min*TIME][^PRIORITY], as in 2x30+150, 860+1@1s or \
                       chat:213+70@3/min*15min^background, at most 65536 requests"
                .to_owned(),
        }
        };
        let each = text.split(',').map(str::trim);
        let parts = each.map(|each| part(each).ok_or_else(|| wrong(each)));
        let found = RequestText { parts: parts.collect::<Result<_, _>>()? };
        if found.mean() > MOST as f64 { Err(wrong(text)) } else { Ok(found) }
    }
}

fn part(text: &str) -> Option<Part> {
    let (client, text) = text.split_once(':').unwrap_or(("", text));
    let (text, priority) = match text.split_once('^') {
        None => (text, 0),
        Some((text, "background")) => (text, Urgency::BACKGROUND.priority),
        Some((text, priority)) => (text, priority.parse().ok()?),
    };
    let (tokens, time) = match text.split_once('@') {
        None => (text, None),
        Some((tokens, time)) => (tokens, Some(time)),
    };
    let (count, tokens) = match tokens.split_once('x') {
        None => (None, tokens),
        Some((count, tokens)) => (Some(count.parse().ok()?), tokens),
    };
    let (prompt, answer) = tokens.split_once('+')?;
    let (at, arrivals) = match time.map(|time| (time, time.split_once('*'))) {
        Some((_, Some((rate, time)))) if count.is_none() => (0.0, poisson(rate, time)?),
        Some((_, Some(_))) => return None,
        Some((time, None)) => (seconds(time)?, Arrivals::Together(count.unwrap_or(1))),
        None => (0.0, Arrivals::Together(count.unwrap_or(1))),
    };
    let request = LoadRequest::new(at, client, prompt.parse().ok()?, answer.parse().ok()?);
    let request = LoadRequest { priority, ..request };
    let has_some = !matches!(arrivals, Arrivals::Together(0));
    (has_some && request.check().is_ok()).then_some(Part { request, arrivals })
}

/// Arrivals at a rate such as `3/min`, in a time.
fn poisson(rate: &str, time: &str) -> Option<Arrivals> {
    let (number, unit) = rate.split_once('/')?;
    let each = match unit {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let (rate, duration) = (number.parse::<f64>().ok()? / each, seconds(time)?);
    let is_some = |number: f64| number.is_finite() && number > 0.0;
    (is_some(rate) && is_some(duration)).then_some(Arrivals::Poisson { rate, duration })
}

/// The seconds of a time with its unit, as in `250ms`, `1s` or `15min`.
pub(crate) fn seconds(time: &str) -> Option<f64> {
    let units = [("ms", 1e-3), ("min", 60.0), ("s", 1.0)];
    let (number, unit) =
        units.iter().find_map(|(unit, seconds)| Some((time.strip_suffix(unit)?, seconds)))?;
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
        let named = requests("chat:3+4^2,2x5+6@1min^background").expect("requests");
        let named: Vec<_> = named.iter().map(|it| (&*it.client, it.at, it.priority)).collect();
        assert_eq!(named, [("chat", 0.0, 2), ("", 60.0, -1), ("", 60.0, -1)]);
        let wrong = [
            "",
            "30",
            "30+0",
            "0+3",
            "0x3+3",
            "x3+3",
            "3+3@",
            "3+3@1",
            "3+3@-1s",
            "3+3,",
            "3+3^",
            "3+3^high",
            "3+3@1/min",
            "3+3@0/min*1min",
            "3+3@1/day*1min",
            "2x3+3@1/min*1min",
            "3+3@1/s*-1s",
            "99999x3+3",
            "3+3@1000/s*1000s",
        ];
        for wrong in wrong {
            let error = requests(wrong).expect_err(wrong).to_string();
            assert!(error.contains("requests"), "{error}");
        }
    }

    #[test]
    fn requests_at_a_rate_depend_on_the_seed_alone() {
        let text: RequestText =
            "far:8+9@30/min*60min^background,near:3+4@60/h*60min".parse().expect("requests");
        let found = text.requests(3);
        assert_eq!(found, text.requests(3));
        assert_ne!(found, text.requests(4));
        assert!(found.is_sorted_by(|a, b| a.at <= b.at));
        let of = |name: &str| found.iter().filter(|it| it.client == name).collect::<Vec<_>>();
        // Within four standard deviations of the means.
        assert!(of("far").len().abs_diff(1800) < 170, "{}", of("far").len());
        assert!(of("near").len().abs_diff(60) < 31, "{}", of("near").len());
        assert!(of("far").iter().all(|it| it.priority == -1 && it.at < 3600.0));
        // Other parts change nothing of a part's arrivals.
        let alone: RequestText = "far:8+9@30/min*60min^background".parse().expect("requests");
        assert_eq!(alone.requests(3), of("far").into_iter().cloned().collect::<Vec<_>>());
    }
}
