//! What a queue policy decides, and what it is notified of.

use std::time::Duration;

use lapwing_traces::Nanos;

use super::candidate::{Candidate, Charge, End};
use super::prefix::PrefixView;
use super::rank::Rank;

/// Orders requests.
///
/// The life of a request is `refuse`, `arrive`, then `admitted` and any number of `charge`, then `finish`.
/// `evicted` and a further `admitted` may come in between, any number of times; a request that ends
/// while it waits is never admitted. All calls come from one thread at a time.
///
/// A policy decides on order alone, but for `refuse`. It cannot change a token, and it cannot hold a request
/// back: the scheduler is work-conserving, and admits while there is room. Nor can it stop the engine: the
/// request of the best rank always makes progress, and a request can demand the KV page of another only
/// after it has generated a token since it was last given pages. `rank` may therefore change with
/// time in any way. How long a single request waits is up to the policy; one whose ranks do not
/// improve with waiting, and that lets requests overtake, can starve some of them.
///
/// The methods that report what happens, and `survey`, do nothing by default: a policy needs none of them if
/// it ranks by what a [`Candidate`] says, as FCFS and shortest-prompt-first do.
pub trait QueuePolicy: Send {
    /// Name on the command line and in recordings.
    fn name(&self) -> &str;

    /// The waiting requests, before they are ranked for the next admission at time `now`: rules that compare
    /// requests with each other decide here. `prefixes` is that of [`rank`](QueuePolicy::rank).
    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, now: Nanos) {
        let _ = (waiting, prefixes, now);
    }

    /// Rank of a request at time `now`: the smallest goes first, and equal ranks go in order of
    /// arrival. It decides
    /// - which waiting request is admitted next. It is called for every waiting request whenever
    ///   fewer sequences run than may, and again after each admission;
    /// - which running requests get prompt rows into the next chunk first, up to the chunk's size
    ///   (all requests that generate have a row in it anyway). It is called for every running request
    ///   before each chunk if there are several;
    /// - which running request gives its KV pages back when one of better rank needs a page for a
    ///   token that it has generated: the one of the worst rank among those without rows in
    ///   flight. The ranks are those of the last call for the next chunk.
    ///
    /// `prefixes` has the prompt of a waiting request, and how much of it is cached already. It has nothing of
    /// running requests.
    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, now: Nanos) -> Rank;

    /// Whether requests simply go in order of arrival: all ranks are equal, whatever happens, and `survey` does nothing. The queue is
    /// then not looked through.
    fn goes_by_arrival(&self) -> bool {
        false
    }

    /// Whether requests of worse rank may be admitted before `blocked`, for whose tokens the KV cache
    /// has no room at time `now`. By default they may not: the request at the head of the queue
    /// blocks the others, so that none of them takes the pages that it waits for. Called whenever a
    /// request's turn to be admitted comes and it does not fit.
    fn may_overtake(&self, blocked: &Candidate<'_>, now: Nanos) -> bool {
        let _ = (blocked, now);
        false
    }

    /// Whether a request that has just been sent is refused, and after what time its client may try again.
    /// Called once, before any other call for it; nothing else is called for a refused request.
    fn refuse(&mut self, request: &Candidate<'_>, now: Nanos) -> Option<Duration> {
        let _ = (request, now);
        None
    }

    /// A request has entered the queue at time `now`. Called once, after `refuse`.
    /// Requests that cannot be served, such as one with an empty prompt, do not arrive.
    fn arrive(&mut self, request: &Candidate<'_>, now: Nanos) {
        let _ = (request, now);
    }

    /// A request has left the queue and runs: it has KV pages for all of its tokens. Called before
    /// the next `rank`, so that what is counted here decides on the next admission.
    fn admitted(&mut self, request: &Candidate<'_>, now: Nanos) {
        let _ = (request, now);
    }

    /// Work was done for a request, in tokens: prompt rows are charged when they are sent to
    /// a device, generated tokens when they arrive. Rows that are in flight are charged already, and
    /// stay charged if the request fails or is cancelled.
    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, now: Nanos) {
        let _ = (request, charge, now);
    }

    /// The KV cache no longer has `rows` rows of a request that has not ended. Today this is a
    /// preemption: all of its rows are lost, it waits again, and it computes them again once it is
    /// readmitted, unless the prefix cache still has them.
    fn evicted(&mut self, request: &Candidate<'_>, rows: usize, now: Nanos) {
        let _ = (request, rows, now);
    }

    /// Numbers that explain its present decisions, such as the counter of each client, by name.
    fn numbers(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// A request has left the engine, from the queue or while it ran. Called once, after any other
    /// call for it.
    fn finish(&mut self, request: &Candidate<'_>, end: End, now: Nanos) {
        let _ = (request, end, now);
    }
}
