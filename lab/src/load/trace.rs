//! Recorded workloads, in the forms in which they are published.

mod columns;

use std::fmt;
use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;

use super::request::{LoadRequest, WorkloadError};
use columns::Columns;

/// A recorded workload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// Its requests, in order of arrival.
    pub requests: Vec<LoadRequest>,
    /// The form that was read.
    pub form: TraceForm,
    /// Number of recorded requests without prompt or answer, which failed when they were recorded. They are
    /// left out. Always 0 in [`TraceForm::Lines`] and [`TraceForm::Table`], where such a request is an error.
    pub failed: usize,
}

/// The form of a recorded workload, which its first line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceForm {
    /// JSON lines with the fields of [`LoadRequest`].
    Lines,
    /// Comma-separated values with the columns `at` (seconds), `prompt_tokens` and `output_tokens`, and `client`
    /// if there are several.
    Table,
    /// Azure's traces of LLM inference (2023, 2024): comma-separated values with the columns `TIMESTAMP`,
    /// `ContextTokens` and `GeneratedTokens`.
    Azure,
    /// BurstGPT (Wang et al., 2024): comma-separated values with the columns `Timestamp`, `Request tokens` and
    /// `Response tokens`, among others.
    BurstGpt,
    /// Mooncake (Qin et al., FAST 2025): JSON lines with `timestamp` (ms), `input_length`, `output_length` and
    /// `hash_ids`, one for each 512 tokens of the prompt. Equal ids at the same place are equal tokens.
    Mooncake,
}

impl fmt::Display for TraceForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TraceForm::Lines => "JSON lines",
            TraceForm::Table => "comma-separated values",
            TraceForm::Azure => "Azure's form",
            TraceForm::BurstGpt => "BurstGPT's form",
            TraceForm::Mooncake => "Mooncake's form",
        })
    }
}

/// Tokens that one of Mooncake's ids stands for.
const MOONCAKE_BLOCK: usize = 512;

/// A line of Mooncake's form. Other fields have no meaning here.
#[derive(Deserialize)]
struct MooncakeLine {
    timestamp: f64,
    input_length: usize,
    output_length: usize,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

impl Trace {
    /// Reads a recorded workload in any [`TraceForm`]. In the published forms the first request arrives at 0.
    ///
    /// # Errors
    /// [`WorkloadError`], with the number of the line.
    pub fn read(from: impl Read) -> Result<Trace, WorkloadError> {
        let lines = BufReader::new(from).lines().enumerate();
        let mut trace = Trace { requests: Vec::new(), form: TraceForm::Lines, failed: 0 };
        let mut columns = None;
        let mut is_first = true;
        for (at, line) in lines {
            let line = line?;
            let text = line.trim_start_matches('\u{feff}').trim();
            if text.is_empty() {
                continue;
            }
            let wrong = |reason| WorkloadError::Line { line: at + 1, reason };
            if std::mem::take(&mut is_first) {
                if !text.starts_with('{') {
                    let found = Columns::of(text).map_err(wrong)?;
                    trace.form = found.form;
                    columns = Some(found);
                    continue;
                }
                if serde_json::from_str::<MooncakeLine>(text).is_ok() {
                    trace.form = TraceForm::Mooncake;
                }
            }
            let request = match &columns {
                Some(columns) => columns.read(text),
                None if trace.form == TraceForm::Mooncake => mooncake(text),
                None => serde_json::from_str(text).map_err(|error| error.to_string()),
            };
            trace.add(request.map_err(wrong)?).map_err(wrong)?;
        }
        trace.requests.sort_by(|one, other| one.at.total_cmp(&other.at));
        if trace.form.is_published() {
            let start = trace.requests.first().map_or(0.0, |request| request.at);
            trace.requests.iter_mut().for_each(|request| request.at -= start);
        }
        Ok(trace)
    }

    fn add(&mut self, request: LoadRequest) -> Result<(), String> {
        let has_failed = request.prompt_tokens == 0 || request.output_tokens == 0;
        if has_failed && self.form.is_published() {
            self.failed += 1;
            return Ok(());
        }
        // Published times may be dates, whose distance from the first one counts.
        let checked = match self.form.is_published() {
            true => LoadRequest { at: 0.0, ..request.clone() }.check(),
            false => request.check(),
        };
        checked.map(|()| self.requests.push(request))
    }
}

impl TraceForm {
    /// Whether it is the form of a published trace, and not our own.
    fn is_published(self) -> bool {
        !matches!(self, TraceForm::Lines | TraceForm::Table)
    }
}

fn mooncake(line: &str) -> Result<LoadRequest, String> {
    let line: MooncakeLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if !line.timestamp.is_finite() {
        return Err("timestamp is not a number".to_owned());
    }
    let mut request =
        LoadRequest::new(line.timestamp / 1e3, "", line.input_length, line.output_length);
    let starts = (0..line.input_length).step_by(MOONCAKE_BLOCK);
    let blocks = line.hash_ids.iter().zip(starts);
    let block = |(id, start): (&u64, usize)| {
        (format!("block {id}"), MOONCAKE_BLOCK.min(line.input_length - start))
    };
    request.prefix = blocks.map(block).collect();
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Trace {
        Trace::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn every_form_is_recognised_by_its_first_line() {
        let rows = [
            (
                "{\"at\":2,\"prompt_tokens\":7,\"output_tokens\":3}\n{\"at\":1,\"prompt_tokens\":4,\"output_tokens\":2}",
                TraceForm::Lines,
                [1.0, 2.0],
            ),
            ("at,prompt_tokens,output_tokens\n2,7,3\n1,4,2\n", TraceForm::Table, [1.0, 2.0]),
            (
                "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.6805900,4,2\n2023-11-17 00:00:01.1805900,7,3\n",
                TraceForm::Azure,
                [0.0, 1.5],
            ),
            (
                "\u{feff}TIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-05-12 00:00:00.009930+00:00,4,2\r\n2024-05-13 00:00:00.009930+00:00,7,3\r\n",
                TraceForm::Azure,
                [0.0, 86400.0],
            ),
            (
                "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n45,GPT-4,4,2,6,API log\n60,ChatGPT,9,0,9,API log\n118,ChatGPT,7,3,10,Conversation log\n",
                TraceForm::BurstGpt,
                [0.0, 73.0],
            ),
            (
                "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,\"a\",1.5,ChatGPT,4,2,6,x\n6,,1,GPT-4,7,3,10,y\n",
                TraceForm::BurstGpt,
                [0.0, 1.0],
            ),
            (
                "{\"timestamp\":250,\"input_length\":4,\"output_length\":2,\"hash_ids\":[9],\"session_id\":\"s\"}\n{\"timestamp\":3250,\"input_length\":7,\"output_length\":3}\n",
                TraceForm::Mooncake,
                [0.0, 3.0],
            ),
        ];
        for (text, form, times) in rows {
            let trace = read(text);
            let failed = usize::from(text.contains(",0,"));
            assert_eq!((trace.form, trace.failed), (form, failed), "{text}");
            let tokens: Vec<_> =
                trace.requests.iter().map(|r| (r.prompt_tokens, r.output_tokens)).collect();
            assert_eq!(tokens, [(4, 2), (7, 3)], "{text}");
            for (request, at) in trace.requests.iter().zip(times) {
                assert!((request.at - at).abs() < 1e-5, "{request:?} at {at}");
            }
        }
        assert!(read("\n\n").requests.is_empty());
        assert_eq!(read("client,at,prompt_tokens,output_tokens\nb,0,1,1").requests[0].client, "b");
    }

    #[test]
    fn prompts_with_equal_blocks_begin_with_the_same_tokens() {
        let line = |ids: &str| {
            format!(
                "{{\"timestamp\":0,\"input_length\":1100,\"output_length\":2,\"hash_ids\":[{ids}]}}\n"
            )
        };
        let trace = read(&[line("0,1,2"), line("0,1,3"), line("4")].concat());
        let ids: Vec<_> =
            trace.requests.iter().enumerate().map(|(at, r)| r.ids(at, &(0..1000))).collect();
        let same = |one: usize, other: usize| {
            ids[one].iter().zip(&ids[other]).take_while(|(a, b)| a == b).count()
        };
        assert!(ids.iter().all(|ids| ids.len() == 1100));
        assert!((1024..1040).contains(&same(0, 1)) && same(0, 2) < 16, "{}", same(0, 1));
        assert_eq!(trace.requests[0].prefix[2], ("block 2".to_owned(), 76));
        assert_eq!(trace.requests[2].prefix.len(), 1);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
        let rows = [
            ("time,tokens\n1,2\n".to_owned(), "line 1", "TIMESTAMP,ContextTokens"),
            (format!("{azure}yesterday,1,1"), "line 2", "TIMESTAMP is neither"),
            (format!("{azure}NaN,1,1"), "line 2", "TIMESTAMP is neither"),
            (format!("{azure}1,x,1"), "line 2", "ContextTokens is not a number"),
            (format!("{azure}1,1"), "line 2", "GeneratedTokens is missing"),
            ("at,prompt_tokens,output_tokens\n-1,1,1\n".to_owned(), "line 2", "at is -1"),
            ("at,prompt_tokens,output_tokens\n1,1,0\n".to_owned(), "line 2", "at least 1"),
            ("{\"at\":0}".to_owned(), "line 1", "prompt_tokens"),
            (
                "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n{\"at\":0}".to_owned(),
                "line 2",
                "timestamp",
            ),
        ];
        for (text, line, says) in rows {
            let error = Trace::read(text.as_bytes()).expect_err(&text).to_string();
            assert!(error.contains(line) && error.contains(says), "{text}: {error}");
        }
    }
}
