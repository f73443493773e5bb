//! The rule of each policy, on requests and prefix matches that are written down.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_traces::Nanos;

use super::*;
use crate::sequence::SequenceId;

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
fn short_jobs_go_first_until_waiting_has_aged_long_ones() {
    let mut requests = vec![asked("", 100, 50), asked("", 300, 1), asked("", 10, 4)];
    let mut sjf = Shortest { remaining: false, output: 8.0, aging: 0.0 };
    assert_eq!(order(&mut sjf, &requests, Nanos(0)), [2, 1, 0]);
    requests[0].generated = 49;
    let mut srtf = Shortest { remaining: true, ..sjf };
    assert_eq!(order(&mut srtf, &requests, Nanos(0)), [2, 0, 1], "49 of 50 tokens are done");
    requests[1].matched = 250;
    assert_eq!(order(&mut srtf, &requests, Nanos(0)), [2, 1, 0], "cached rows are no work");
    requests[2].submitted = Nanos(10 * SECOND);
    let mut aged = Shortest { aging: 100.0, ..sjf };
    assert_eq!(order(&mut aged, &requests, Nanos(11 * SECOND)), [1, 0, 2]);
}

#[test]
fn shortest_first_has_the_least_mean_time_of_all_orders() {
    // One at a time, all there from the start: the mean time is known for each order.
    let work = [(30, 3), (5, 9), (80, 1), (12, 2), (40, 4)];
    let requests: Vec<Asked> = work.iter().map(|(p, t)| asked("", *p, *t)).collect();
    let cost = |at: usize| work[at].0 as f64 + 8.0 * work[at].1 as f64;
    let total = |order: &[usize]| {
        let ends = order.iter().scan(0.0, |end, at| {
            *end += cost(*at);
            Some(*end)
        });
        ends.sum::<f64>()
    };
    let mut sjf = Shortest { remaining: false, output: 8.0, aging: 0.0 };
    let found = total(&order(&mut sjf, &requests, Nanos(0)));
    let mut best = f64::INFINITY;
    permutations(&mut (0..work.len()).collect(), 0, &mut |order| best = best.min(total(order)));
    assert_eq!(found, best);
}

/// Sum of the times at which jobs of these lengths end that are all there from the start, if the policy chooses
/// anew before every token.
fn total_time(policy: &mut dyn QueuePolicy, lengths: &[usize]) -> usize {
    let mut jobs: Vec<Asked> = lengths.iter().map(|length| asked("", 1, *length - 1)).collect();
    arrive(policy, &jobs);
    jobs.iter_mut().for_each(|job| job.running = true);
    let (mut left, mut now, mut total) = (lengths.to_vec(), 0, 0);
    while let Some(next) = (0..jobs.len())
        .filter(|at| left[*at] > 0)
        .min_by_key(|at| (policy.rank(&candidate(&jobs, *at), &jobs, Nanos(0)), *at))
    {
        let prompt_rows = usize::from(left[next] == lengths[next]);
        let charge = Charge { prompt_rows, generated_tokens: 1 - prompt_rows, recomputed_rows: 0 };
        policy.charge(&candidate(&jobs, next), charge, Nanos(0));
        (left[next], now) = (left[next] - 1, now + 1);
        if left[next] == 0 {
            policy.finish(&candidate(&jobs, next), End::Completed, Nanos(0));
            total += now;
        }
    }
    total
}

#[test]
fn a_feedback_queue_that_knows_no_length_is_within_a_bound_of_the_best_order() {
    const QUANTUM: usize = 2;
    let mut number = 7_u64;
    let mut better = 0;
    for case in 0..300 {
        let mut length = || {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // From 1 to 128 tokens, short ones more often.
            let most = 1 << (1 + (number >> 40) % 7);
            1 + (number >> 33) as usize % most
        };
        let lengths: Vec<usize> = (0..6).map(|_| length()).collect();
        let time_of = |order: &[usize]| {
            let ends = order.iter().scan(0, |now, at| {
                *now += lengths[*at];
                Some(*now)
            });
            ends.sum::<usize>()
        };
        let mut best = usize::MAX;
        permutations(&mut (0..6).collect(), 0, &mut |order| best = best.min(time_of(order)));
        let mut mlfq = Mlfq::new(QUANTUM as f64, 12, Duration::from_secs(1000));
        let found = total_time(&mut mlfq, &lengths);
        // Before a job of L tokens ends, each other one has at most 2 L + QUANTUM + 1 of its own.
        let pairs = 6 * 5 / 2;
        assert!(found >= best && found <= 3 * best + (QUANTUM + 1) * pairs, "{case}: {lengths:?}");
        better += usize::from(found < time_of(&[0, 1, 2, 3, 4, 5]));
    }
    assert!(better > 150, "it was better than the order of arrival in {better} of 300 cases");
}

fn permutations(items: &mut Vec<usize>, from: usize, see: &mut impl FnMut(&[usize])) {
    if from == items.len() {
        return see(items);
    }
    for at in from..items.len() {
        items.swap(from, at);
        permutations(items, from + 1, see);
        items.swap(from, at);
    }
}

#[test]
fn an_oracle_orders_as_the_shortest_answer() {
    let requests: Vec<Asked> =
        [9, 2, 7, 2, 30].iter().map(|tokens| asked("", 10, *tokens)).collect();
    let mut srtf = Shortest { remaining: true, output: 8.0, aging: 0.0 };
    let expected = order(&mut srtf, &requests, Nanos(0));
    let mut learned = Learned::new(Box::new(Oracle), Duration::from_secs(60));
    assert_eq!(order(&mut learned, &requests, Nanos(0)), expected);
    // One of ten pairs is tied.
    assert_eq!(learned.kendall_tau(), Some(0.9));
    let by_arrival = [0, 1, 2, 3, 4];
    assert_eq!(order(&mut learned, &requests, Nanos(61 * SECOND)), by_arrival, "all are starving");
}

#[test]
fn a_ranker_learns_which_requests_have_long_answers() {
    // Prompts that end with token 7 have answers of 100 tokens, the others of 5 to 14.
    let mut learned = Learned::default();
    let mut requests: Vec<Asked> = (0..200).map(|at| asked("", 20 + at % 3, 200)).collect();
    let mut lengths = Vec::new();
    for (at, request) in requests.iter_mut().enumerate() {
        let is_long = at * 7 % 5 == 0;
        request.prompt.push(if is_long { 7 } else { 8 + (at % 11) as u32 });
        lengths.push(if is_long { 100 } else { 5 + at % 10 });
    }
    let score = |learned: &mut Learned, at: usize| {
        learned.survey(&[candidate(&requests, at)], &requests, Nanos(0));
        learned.rank(&candidate(&requests, at), &requests, Nanos(0)).0
    };
    for at in 0..150 {
        score(&mut learned, at);
        let mut done = requests.clone();
        (done[at].generated, done[at].running) = (lengths[at], true);
        learned.finish(&candidate(&done, at), End::Completed, Nanos(0));
    }
    let scores: Vec<(f64, bool)> =
        (150..200).map(|at| (score(&mut learned, at), lengths[at] == 100)).collect();
    let least_long =
        scores.iter().filter(|(_, long)| *long).map(|(s, _)| *s).fold(f64::INFINITY, f64::min);
    let most_short =
        scores.iter().filter(|(_, long)| !long).map(|(s, _)| *s).fold(f64::MIN, f64::max);
    assert!(least_long > most_short, "{least_long} {most_short}");
    assert!(learned.kendall_tau().expect("many") > 0.2, "{:?}", learned.kendall_tau());
}

#[test]
fn response_ratios_grow_while_others_are_served() {
    let mut requests = vec![asked("", 400, 1), asked("", 100, 1), asked("", 50, 1)];
    let mut hrrn = Hrrn::default();
    arrive(&mut hrrn, &requests[..1]);
    let charge = Charge { prompt_rows: 200, ..Charge::default() };
    hrrn.charge(&candidate(&requests, 0), charge, Nanos(0));
    requests[0].running = false;
    for at in 1..3 {
        hrrn.arrive(&candidate(&requests, at), Nanos(0));
    }
    // 200/400 for the first, 0 for the others.
    assert_eq!(order(&mut hrrn.clone(), &requests, Nanos(0))[0], 0);
    hrrn.charge(&candidate(&requests, 0), charge, Nanos(0));
    // 400/400, 200/100, 200/50.
    assert_eq!(order(&mut hrrn.clone(), &requests, Nanos(0))[..2], [2, 1]);
    requests[1].matched = 100;
    assert_eq!(order(&mut hrrn, &requests, Nanos(0))[0], 1, "nothing to compute");
}

#[test]
fn a_feedback_queue_lowers_requests_by_their_use_and_lifts_starving_ones() {
    let requests = vec![asked("", 100, 10), asked("", 8, 10), asked("", 20, 10)];
    let mut mlfq = Mlfq::new(16.0, 4, Duration::from_secs(30));
    arrive(&mut mlfq, &requests);
    let level =
        |mlfq: &Mlfq, at, now| mlfq.rank(&candidate(&requests, at), &requests, Nanos(now)).0;
    // Quanta 16, 32, 64 and no end: 100 rows skip to the last level.
    assert_eq!([0, 1, 2].map(|at| level(&mlfq, at, 0)), [3.0, 0.0, 1.0]);
    let use_of = |tokens| Charge { generated_tokens: tokens, ..Charge::default() };
    mlfq.charge(&candidate(&requests, 1), use_of(16), Nanos(0));
    assert_eq!(level(&mlfq, 1, 0), 0.0, "the quantum is used, not exceeded");
    mlfq.charge(&candidate(&requests, 1), use_of(1), Nanos(0));
    assert_eq!(level(&mlfq, 1, 0), 1.0);
    mlfq.charge(&candidate(&requests, 1), use_of(100), Nanos(0));
    assert_eq!(level(&mlfq, 1, 0), 3.0, "several levels at once");
    assert_eq!(level(&mlfq, 0, 30 * SECOND), 0.0, "starving");
    mlfq.admitted(&candidate(&requests, 0), Nanos(30 * SECOND));
    let mut running = requests.clone();
    running[0].running = true;
    assert_eq!(mlfq.rank(&candidate(&running, 0), &running, Nanos(31 * SECOND)).0, 0.0);
    mlfq.charge(&candidate(&running, 0), use_of(17), Nanos(31 * SECOND));
    assert_eq!(mlfq.rank(&candidate(&running, 0), &running, Nanos(31 * SECOND)).0, 1.0);
}

#[test]
fn priorities_come_before_deadlines() {
    let mut requests = vec![asked("", 1, 1); 5];
    let urgent = |priority, seconds: Option<u64>| Urgency {
        priority,
        deadline: seconds.map(Duration::from_secs),
    };
    requests[0].urgency = urgent(0, None);
    requests[1].urgency = urgent(0, Some(9));
    requests[2].urgency = urgent(0, Some(5));
    requests[2].submitted = Nanos(6 * SECOND);
    requests[3].urgency = urgent(2, None);
    requests[4].urgency = urgent(-1, Some(1));
    assert_eq!(order(&mut Edf, &requests, Nanos(7 * SECOND)), [3, 1, 2, 0, 4]);
}

fn text(parts: &[(u32, usize)]) -> Vec<u32> {
    parts.iter().flat_map(|(token, count)| std::iter::repeat_n(*token, *count)).collect()
}

#[test]
fn the_longest_match_goes_first_and_a_shared_beginning_is_computed_once() {
    let mut requests = vec![asked("", 60, 1); 5];
    requests[1].matched = 40;
    requests[2].matched = 50;
    requests[0].prompt = text(&[(1, 60)]);
    requests[3].prompt = text(&[(2, 40), (3, 20)]);
    requests[4].prompt = text(&[(2, 40), (4, 20)]);
    assert_eq!(order(&mut Lpm::default(), &requests, Nanos(0)), [2, 1, 0, 3, 4]);
    // While the first one waits, the other one goes after all others.
    let mut lpm = Lpm::default();
    let all: Vec<_> = [4, 0, 3].iter().map(|at| candidate(&requests, *at)).collect();
    lpm.survey(&all, &requests, Nanos(0));
    let rank = |at| lpm.rank(&candidate(&requests, at), &requests, Nanos(0));
    assert!(rank(4) > rank(0) && rank(3) == rank(0));
    // Above the limit, in order of arrival.
    let mut few = Lpm::new(32, 4);
    let now: Vec<_> = (0..5).map(|at| candidate(&requests, at)).collect();
    few.survey(&now, &requests, Nanos(0));
    assert!(
        (0..5).all(|at| few.rank(&candidate(&requests, at), &requests, Nanos(0)) == Rank::by(0.0))
    );
}

#[test]
fn a_depth_first_search_takes_the_fullest_branch_first() {
    let mut requests = vec![asked("", 0, 1); 7];
    let prompts: [&[(u32, usize)]; 7] = [
        &[(1, 4)],                 // ends at the node that 1, 2 and 3 pass
        &[(1, 4), (2, 4)],         // a branch of its own
        &[(1, 4), (3, 4)],         // the same branch as 3
        &[(1, 4), (3, 4), (5, 2)], // below it
        &[(9, 6)],                 // another root, with 5
        &[(9, 6), (8, 1)],
        &[(7, 3)], // alone
    ];
    for (request, prompt) in requests.iter_mut().zip(prompts) {
        request.prompt = text(prompt);
        request.matched = request.prompt.len();
    }
    let candidates: Vec<_> = (0..7).map(|at| candidate(&requests, at)).collect();
    let mut dfs = DfsWeight::default();
    dfs.survey(&candidates, &requests, Nanos(0));
    let mut found: Vec<usize> = (0..7).collect();
    found.sort_by_key(|at| dfs.rank(&candidates[*at], &requests, Nanos(0)));
    assert_eq!(found, [3, 2, 1, 0, 5, 4, 6]);
}

#[test]
fn every_group_has_its_turn() {
    // 3 requests with 95 % hits, 4 without: quotas of 2 · (group + 1) of 2 groups.
    let mut requests = vec![asked("", 100, 1); 12];
    requests.iter_mut().take(8).for_each(|request| request.matched = 95);
    let mut preble = Preble::new(2, 2);
    let order = order(&mut preble, &requests, Nanos(0));
    assert_eq!(order, [0, 1, 2, 3, 8, 9, 4, 5, 6, 7, 10, 11]);
}

#[test]
fn the_client_with_the_least_service_goes_first_by_weight() {
    let requests: Vec<Asked> =
        [("a", 100, 10), ("a", 100, 10), ("b", 30, 5), ("b", 30, 5), ("c", 300, 1)]
            .iter()
            .map(|(client, prompt, tokens)| asked(client, *prompt, *tokens))
            .collect();
    let mut vtc = Vtc::default();
    arrive(&mut vtc, &requests);
    // a 120; b 40; c 302; b 80; a 240.
    assert_eq!(order(&mut vtc, &requests, Nanos(0)), [0, 2, 4, 3, 1]);
    assert_eq!(["a", "b", "c"].map(|name| vtc.counter(&name.into())), [240.0, 80.0, 302.0]);
    let weights = HashMap::from([("a".into(), 10.0)]);
    let mut weighted = Vtc::new(1.0, 2.0, false, weights);
    arrive(&mut weighted, &requests);
    // a 12; b 40; c 302; a 24; b 80.
    assert_eq!(order(&mut weighted, &requests, Nanos(0)), [0, 2, 4, 1, 3]);
    assert_eq!(weighted.counter(&"a".into()), 24.0);
}

#[test]
fn a_client_that_returns_is_lifted() {
    let requests =
        vec![asked("a", 100, 1), asked("a", 100, 1), asked("b", 10, 1), asked("c", 1, 1)];
    let mut vtc = Vtc::default();
    vtc.arrive(&candidate(&requests, 0), Nanos(0));
    vtc.arrive(&candidate(&requests, 1), Nanos(0));
    serve(&mut vtc, &requests, 0, Nanos(0));
    vtc.arrive(&candidate(&requests, 2), Nanos(0));
    assert_eq!(vtc.counter(&"b".into()), 102.0, "to the least in the queue");
    serve(&mut vtc, &requests, 1, Nanos(0));
    serve(&mut vtc, &requests, 2, Nanos(0));
    vtc.arrive(&candidate(&requests, 3), Nanos(0));
    // b left the queue last, before it was charged for its token.
    assert_eq!(vtc.counter(&"c".into()), 112.0, "to the one that left last");
}

#[test]
fn predicted_output_is_charged_at_admission_and_corrected() {
    let requests = vec![asked("a", 10, 8), asked("a", 10, 8), asked("a", 10, 8)];
    let mut vtc = Vtc::new(1.0, 2.0, true, HashMap::new());
    arrive(&mut vtc, &requests);
    serve(&mut vtc, &requests, 0, Nanos(0));
    assert_eq!(vtc.counter(&"a".into()), 26.0);
    let mut running = requests.clone();
    running[1].running = true;
    vtc.admitted(&candidate(&running, 1), Nanos(0));
    assert_eq!(vtc.counter(&"a".into()), 52.0, "10 and the 8 that are expected");
    vtc.charge(
        &candidate(&running, 1),
        Charge { generated_tokens: 3, ..Charge::default() },
        Nanos(0),
    );
    assert_eq!(vtc.counter(&"a".into()), 52.0);
    running[1].generated = 3;
    vtc.finish(&candidate(&running, 1), End::Completed, Nanos(0));
    assert_eq!(vtc.counter(&"a".into()), 42.0, "5 were not generated");
    // (4 · 8 + 3) / 5 are expected now.
    vtc.admitted(&candidate(&running, 2), Nanos(0));
    assert_eq!(vtc.counter(&"a".into()), 52.0 + 14.0);
}

/// Requests of clients with different hits.
fn mixed() -> Vec<Asked> {
    let clients = ["a", "b", "a", "c", "a", "b", "a", "a"];
    let mut requests: Vec<Asked> =
        clients.iter().enumerate().map(|(at, c)| asked(c, 100 + at, 5)).collect();
    for (at, request) in requests.iter_mut().enumerate() {
        request.matched = at * 37 % 90;
        request.prompt = vec![at as u32 + 1; 100 + at];
    }
    requests
}

#[test]
fn with_endless_credit_or_one_client_the_order_is_that_of_the_longest_match() {
    let requests = mixed();
    let expected = order(&mut Lpm::default(), &requests, Nanos(0));
    let mut endless = Dlpm::new(1e9, 1.0, 2.0, HashMap::new());
    arrive(&mut endless, &requests);
    assert_eq!(order(&mut endless, &requests, Nanos(0)), expected);
    let alone: Vec<Asked> =
        requests.iter().map(|r| Asked { client: "a".into(), ..r.clone() }).collect();
    for quantum in [1.0, 50.0, 1e4] {
        let mut dlpm = Dlpm::new(quantum, 1.0, 2.0, HashMap::new());
        arrive(&mut dlpm, &alone);
        assert_eq!(order(&mut dlpm, &alone, Nanos(0)), expected, "{quantum}");
    }
}

#[test]
fn a_heavy_client_with_hits_cannot_starve_another() {
    // All requests of one have 90 % hits, so that longest prefix match serves them all first.
    let mut requests: Vec<Asked> = (0..40).map(|_| asked("heavy", 100, 5)).collect();
    requests.iter_mut().for_each(|request| request.matched = 90);
    requests.extend((0..20).map(|_| asked("victim", 20, 5)));
    requests.iter_mut().enumerate().for_each(|(at, r)| r.prompt[0] = at as u32);
    let (quantum, cost) = (60.0, 30.0);
    assert!(order(&mut Lpm::default(), &requests, Nanos(0))[..40].iter().all(|at| *at < 40));
    let mut dlpm = Dlpm::new(quantum, 1.0, 2.0, HashMap::new());
    arrive(&mut dlpm, &requests);
    let mut service = [0.0, 0.0];
    for at in order(&mut dlpm, &requests, Nanos(0)).into_iter().take(40) {
        let (client, uncached) = if at < 40 { (0, 10.0) } else { (1, 20.0) };
        service[client] += uncached + 10.0;
        // Both wait all the time: they differ by a quantum, and the request that exceeds it.
        let difference: f64 = service[0] - service[1];
        assert!(difference.abs() <= 2.0 * (quantum + cost), "{service:?}");
    }
}

#[test]
fn debts_are_paid_back_in_one_refill_and_clients_are_forgotten() {
    let requests = vec![asked("a", 1000, 5), asked("a", 10, 1), asked("b", 10, 1)];
    let mut dlpm = Dlpm::new(10.0, 1.0, 2.0, HashMap::new());
    arrive(&mut dlpm, &requests[..2]);
    assert_eq!(order(&mut dlpm, &requests[..2].to_vec(), Nanos(0)), [0, 1]);
    // 10 − 1000 − 10 of the first, refilled 101 times, then 12 of the second.
    let refills = dlpm.numbers().into_iter().find(|(name, _)| name == "refills").expect("counted");
    assert_eq!((refills.1, dlpm.credit(&"a".into())), (102.0, 10.0 - 12.0));
    dlpm.arrive(&candidate(&requests, 2), Nanos(3599 * SECOND));
    assert_eq!(dlpm.credit(&"a".into()), -2.0);
    dlpm.arrive(&candidate(&requests, 2), Nanos(3600 * SECOND));
    assert_eq!(dlpm.credit(&"a".into()), 0.0, "forgotten");
}

#[test]
fn overtaking_ends_with_patience() {
    let requests = vec![asked("", 10, 1)];
    let policy = FcfsOvertaking::default();
    let may = |now| policy.may_overtake(&candidate(&requests, 0), Nanos(now));
    assert!(may(0) && may(10 * SECOND - 1) && !may(10 * SECOND));
    assert!(!Fcfs.may_overtake(&candidate(&requests, 0), Nanos(0)));
}

#[test]
fn a_client_beyond_its_limit_is_refused_until_a_minute_has_passed() {
    let requests = vec![asked("a", 1, 1), asked("b", 1, 1), asked("c", 1, 1)];
    let mut policy = by_name("vtc:rpm=2,rpm.b=1").expect("is known");
    let seconds = |seconds: u64| Nanos(seconds * 1_000_000_000);
    // Client, second of arrival, seconds until it may try again.
    let rows = [
        (0, 0, None),
        (1, 5, None),
        (0, 10, None),
        (0, 20, Some(40)),
        (1, 20, Some(45)),
        (2, 20, None),
        // What was refused does not count.
        (0, 60, None),
        (0, 61, Some(9)),
        (1, 65, None),
        (0, 70, None),
    ];
    for (client, at, wait) in rows {
        let refused = policy.refuse(&candidate(&requests, client), seconds(at));
        assert_eq!(refused, wait.map(Duration::from_secs), "client {client} at {at} s");
    }
    assert_eq!(policy.numbers(), [("requests refused".to_owned(), 3.0)]);
    let mut other = by_name("rpm").expect("is known");
    let refused = |n| other.refuse(&candidate(&requests, 0), seconds(n)).is_some();
    let found: Vec<bool> = (0..22).map(refused).collect();
    assert_eq!(found.iter().filter(|refused| **refused).count(), 2, "20 a minute by default");
    let mut without = by_name("vtc").expect("is known");
    assert!((0..100).all(|_| without.refuse(&candidate(&requests, 0), Nanos(0)).is_none()));
}
