//! The end of an answer.

use serde::Serialize;

use crate::cli::answer::{Answer, Timings};
use crate::cli::failure::Failure;
use crate::cli::output::{print_json, print_plain};
use crate::cli::session::Session;

#[derive(Serialize)]
struct Report<'a> {
    role: &'static str,
    content: &'a str,
    finish_reason: &'static str,
    seed: u64,
    timings: Option<Timings>,
}

/// Prints the figures after the text of an answer, or its JSON form.
pub(super) fn print_end(
    answer: &Answer,
    seed: u64,
    timings: Option<Timings>,
    session: &Session,
) -> Result<(), Failure> {
    let reason = answer.summary.as_ref().map_or("interrupted", |end| end.reason.name());
    if session.json {
        return print_json(&Report {
            role: "assistant",
            content: &answer.text,
            finish_reason: reason,
            seed,
            timings,
        });
    }
    print_plain("\n")?;
    match reason {
        "interrupted" => session.note("(stopped)"),
        "length" => session.note("(length limit; raise it with -n N or /set max-tokens N)"),
        _ => {}
    }
    Ok(())
}
