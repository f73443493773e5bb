//! Shortest job first, and shortest remaining time first, with aging.

use lapwing_plan::registry::{Parameter, Parameters};
use lapwing_traces::Nanos;

use super::candidate::Candidate;
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;

/// The request with the least work goes first: rank = rows to compute + `output` · tokens to generate − `aging` ·
/// seconds since its arrival, in prompt rows. The tokens to generate are the most that it asks for.
///
/// With `remaining`, the work is that which is left (SRTF, shortest remaining time first), and a running request
/// of more work gives its pages to one of less. Otherwise it is that of the whole request (SJF). Without aging,
/// long requests can starve.
#[derive(Clone, Copy, Debug)]
pub struct Shortest {
    /// Whether work that is done no longer counts.
    pub remaining: bool,
    /// Cost of a generated token, in prompt rows.
    pub output: f64,
    /// Prompt rows by which each second of waiting improves the rank.
    pub aging: f64,
}

impl Shortest {
    /// Cost of a generated token in prompt rows, if none is given.
    pub const OUTPUT: f64 = 8.0;
    /// Aging in prompt rows per second, if none is given.
    pub const AGING: f64 = 50.0;

    fn of(remaining: bool, parameters: &Parameters) -> Shortest {
        let (output, aging) = (parameters.value("output"), parameters.value("aging"));
        Shortest { remaining, output, aging }
    }
}

const OUTPUT: Parameter = Parameter::new(
    "output",
    "cost of a generated token in prompt tokens",
    Shortest::OUTPUT,
    0.0..=1e3,
);
const AGING: Parameter =
    Parameter::new("aging", "prompt tokens per second of waiting", Shortest::AGING, 0.0..=1e6);

pub(super) const SJF: PolicyEntry =
    PolicyEntry::new("sjf", "shortest job first, with aging", &[OUTPUT, AGING], |p| {
        Box::new(Shortest::of(false, p))
    });

pub(super) const SRTF: PolicyEntry =
    PolicyEntry::new("srtf", "shortest remaining time first, with aging", &[OUTPUT, AGING], |p| {
        Box::new(Shortest::of(true, p))
    });

impl QueuePolicy for Shortest {
    fn name(&self) -> &str {
        if self.remaining { "srtf" } else { "sjf" }
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, now: Nanos) -> Rank {
        let (rows, tokens) = match self.remaining {
            true => {
                let matched = prefixes.matched(request.sequence);
                let left = request.tokens_max.saturating_sub(request.generated_tokens);
                (request.to_compute.saturating_sub(matched), left)
            }
            false => (request.prompt_tokens, request.tokens_max),
        };
        let waited = now.since(request.submitted).as_secs_f64();
        Rank::by(rows as f64 + self.output * tokens as f64 - self.aging * waited)
    }
}
