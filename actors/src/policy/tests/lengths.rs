//! Policies that order by the work of a request: SJF, SRTF, MLFQ, HRRN and learned lengths.

use super::*;

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
