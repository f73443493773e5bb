//! The rule of each policy, on requests and prefix matches that are written down.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_traces::Nanos;

use super::*;
use crate::sequence::SequenceId;

mod clients;
mod lengths;
mod prefixes;

/// A waiting request.
#[derive(Clone)]
struct Asked {
    client: ClientId,
    prompt: Vec<u32>,
    tokens_max: usize,
    generated: usize,
    submitted: Nanos,
    urgency: Urgency,
    matched: usize,
    running: bool,
}

fn asked(client: &str, prompt: usize, tokens_max: usize) -> Asked {
    Asked {
        client: client.into(),
        prompt: vec![0; prompt],
        tokens_max,
        generated: 0,
        submitted: Nanos(0),
        urgency: Urgency::default(),
        matched: 0,
        running: false,
    }
}

impl PrefixView for Vec<Asked> {
    fn matched(&self, sequence: SequenceId) -> usize {
        self[sequence.0 as usize].matched
    }

    fn tokens(&self, sequence: SequenceId) -> &[u32] {
        &self[sequence.0 as usize].prompt
    }
}

fn candidate(requests: &[Asked], at: usize) -> Candidate<'_> {
    let request = &requests[at];
    Candidate {
        sequence: SequenceId(at as u64),
        client: &request.client,
        prompt_tokens: request.prompt.len(),
        generated_tokens: request.generated,
        tokens_max: request.tokens_max,
        to_compute: request.prompt.len(),
        submitted: request.submitted,
        urgency: request.urgency,
        running: request.running,
    }
}

fn arrive(policy: &mut dyn QueuePolicy, requests: &[Asked]) {
    for at in 0..requests.len() {
        policy.arrive(&candidate(requests, at), requests[at].submitted);
    }
}

/// The order in which a policy admits these requests if each has ended with all of its tokens before the next is
/// chosen, at time `now`.
fn order(policy: &mut dyn QueuePolicy, requests: &Vec<Asked>, now: Nanos) -> Vec<usize> {
    let mut waiting: Vec<usize> = (0..requests.len()).collect();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let candidates: Vec<_> = waiting.iter().map(|at| candidate(requests, *at)).collect();
        policy.survey(&candidates, requests, now);
        let rank = |at: &usize| (policy.rank(&candidate(requests, *at), requests, now), *at);
        let next = waiting.iter().copied().min_by_key(rank).expect("one waits");
        waiting.retain(|at| *at != next);
        serve(policy, requests, next, now);
        order.push(next);
    }
    order
}

/// Admits a request, charges all of it, and ends it.
fn serve(policy: &mut dyn QueuePolicy, requests: &[Asked], at: usize, now: Nanos) {
    let mut done = requests.to_vec();
    done[at].running = true;
    policy.admitted(&candidate(&done, at), now);
    let (prompt_rows, generated_tokens) = (requests[at].prompt.len(), requests[at].tokens_max);
    let charge = Charge { prompt_rows, generated_tokens, recomputed_rows: 0 };
    policy.charge(&candidate(&done, at), charge, now);
    done[at].generated = generated_tokens;
    policy.finish(&candidate(&done, at), End::Completed, now);
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn priorities_come_before_deadlines() {
    let mut requests = vec![asked("", 1, 1); 5];
    let urgent = |priority, seconds: Option<u64>| Urgency {
        priority,
        deadline: seconds.map(Duration::from_secs),
        token_gap: None,
    };
    requests[0].urgency = urgent(0, None);
    requests[1].urgency = urgent(0, Some(9));
    requests[2].urgency = urgent(0, Some(5));
    requests[2].submitted = Nanos(6 * SECOND);
    requests[3].urgency = urgent(2, None);
    requests[4].urgency = urgent(-1, Some(1));
    assert_eq!(order(&mut Edf, &requests, Nanos(7 * SECOND)), [3, 1, 2, 0, 4]);
}

#[test]
fn overtaking_ends_with_patience() {
    let requests = vec![asked("", 10, 1)];
    let policy = FcfsOvertaking::default();
    let may = |now| policy.may_overtake(&candidate(&requests, 0), Nanos(now));
    assert!(may(0) && may(10 * SECOND - 1) && !may(10 * SECOND));
    assert!(!Fcfs.may_overtake(&candidate(&requests, 0), Nanos(0)));
}
