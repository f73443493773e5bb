use std::time::Duration;

use lapwing_plan::time::FixedRate;

use super::*;
use crate::policy::Fcfs;

const MS: u64 = 1_000_000;

/// 1 ms for each pass and each row.
fn serving(kv_tokens: usize, prefix_cache: bool) -> Serving {
    let per_stage = Duration::from_millis(1);
    Serving {
        time: Arc::new(FixedRate { per_stage, per_row: per_stage }),
        kv_tokens,
        page_rows: 1,
        chunk_rows: 512,
        sequences_max: 64,
        prefix_cache,
        token_gap: None,
        reserve: Reserve::Prompt,
        batches: Batches::default(),
        policy: Box::new(Fcfs),
    }
}

fn arrival(at: u64, ids: std::ops::Range<u32>, tokens: usize) -> Arrival {
    Arrival::new(Nanos(at * MS), ids.collect(), tokens)
}

#[test]
fn a_request_takes_the_time_of_its_passes() {
    let (served, stats) = serving(100, true).run(&[arrival(5, 10..20, 3)], None).expect("served");
    // A pass of 10 rows, then two of one row.
    let ends = [16, 18, 20].map(|ms| Nanos(ms * MS));
    assert_eq!(served[0].tokens, ends);
    let times = served[0].times.expect("an end");
    assert_eq!((times.submitted, times.finished), (Nanos(5 * MS), ends[2]));
    assert_eq!((stats.all.prompt_tokens, stats.all.generated_tokens), (10, 3));
}

#[test]
fn requests_that_run_together_share_their_passes() {
    let both = [arrival(0, 10..20, 3), arrival(0, 30..35, 3)];
    let (served, _) = serving(100, true).run(&both, None).expect("served");
    // The second one arrives when the first pass has begun, and then joins it.
    let ends = [[11, 18, 21], [18, 21, 23]].map(|ends| ends.map(|ms| Nanos(ms * MS)));
    assert_eq!([&served[0].tokens[..], &served[1].tokens], ends);
}

#[test]
fn a_known_prefix_takes_no_time_unless_the_cache_is_off() {
    let again = [arrival(0, 10..20, 1), arrival(100, 10..20, 1)];
    for (cache, ms) in [(true, 102), (false, 111)] {
        let (served, stats) = serving(100, cache).run(&again, None).expect("served");
        assert_eq!(served[1].tokens, [Nanos(ms * MS)], "{cache}");
        let times = served[1].times.expect("an end");
        assert_eq!(times.cached_tokens, if cache { 9 } else { 0 });
        assert_eq!(stats.all.cached_tokens, times.cached_tokens);
        assert_eq!(stats.all.prompt_tokens, 20 - times.cached_tokens);
    }
}

#[test]
fn a_request_waits_for_room_or_is_refused_if_it_never_fits() {
    let three = [arrival(0, 0..60, 3), arrival(0, 100..160, 3), arrival(1, 200..400, 1)];
    let (served, stats) = serving(100, true).run(&three, None).expect("served");
    assert!(served[1].tokens[0] > served[0].tokens[2], "{served:?}");
    assert!(served[2].failed.is_some() && served[2].tokens.is_empty(), "{served:?}");
    assert_eq!((stats.all.requests, stats.all.finished, stats.all.failed), (3, 2, 1));
}

#[test]
fn a_run_ends_at_its_time() {
    let served = serving(100, true).run(&[arrival(0, 0..10, 50)], Some(Nanos(20 * MS)));
    let (served, stats) = served.expect("served");
    assert_eq!((served[0].tokens.len(), served[0].times), (6, None));
    assert_eq!((stats.running, stats.clients[0].running, stats.all.finished), (1, 1, 0));
}

#[test]
fn prompts_alone_wait_for_the_steps_between_two_batches() {
    let alone = |steps, prompt_tokens| Batches { alone: true, prompt_tokens, steps };
    let arrivals = || [arrival(0, 10..20, 6), arrival(1, 30..35, 2), arrival(1, 50..54, 2)];
    let firsts = |batches| {
        let serving = Serving { batches, ..serving(100, false) };
        let (served, _) = serving.run(&arrivals(), None).expect("served");
        served.iter().map(|served| served.tokens[0].0 / MS).collect::<Vec<_>>()
    };
    // The first prompt takes 11 ms and each of its steps 2; then both others take 10.
    assert_eq!(firsts(alone(0, None)), [11, 21, 21]);
    assert_eq!(firsts(alone(3, None)), [11, 11 + 3 * 2 + 10, 27]);
    // Batches of at most 8 tokens: 6 ms, then steps of three sequences or two, and 5 ms.
    assert_eq!(firsts(alone(0, Some(8))), [11, 17, 22]);
    assert_eq!(firsts(alone(1, Some(8))), [11, 11 + 2 + 6, 19 + 3 + 5]);
}

#[test]
fn room_for_the_peak_is_left_by_requests_that_end_before_it() {
    // Each needs 20 + 9 rows in the end.
    let two = [arrival(0, 0..20, 10), arrival(0, 100..120, 10), arrival(0, 200..220, 10)];
    let run = |kv_tokens, reserve| {
        let serving = Serving { reserve, ..serving(kv_tokens, false) };
        serving.run(&two, None).expect("served")
    };
    let (served, stats) = run(62, Reserve::Prompt);
    assert!(stats.all.preempted > 0 && served.iter().all(|served| served.tokens.len() == 10));
    let (served, stats) = run(62, Reserve::Peak);
    assert_eq!(stats.all.preempted, 0);
    assert!(served[2].tokens[0] > served[0].tokens[9], "{served:?}");
    // A peak is below the cache: one request more or less makes the difference.
    let (served, _) = run(30, Reserve::Peak);
    assert!(served.iter().all(|served| served.failed.is_none()));
    let (served, _) = run(29, Reserve::Peak);
    assert!(served.iter().all(|served| served.failed.is_some() && served.tokens.is_empty()));
}

#[test]
fn a_generated_token_looks_at_a_few_nodes_however_long_its_text_is() {
    let looks = |prompt: u32, tokens: usize| {
        let requests: Vec<Arrival> = (0..20)
            .map(|number| {
                let first = number * prompt;
                arrival(u64::from(number), first..first + prompt, tokens)
            })
            .collect();
        let mut engine = serving(100_000, true).engine(10_000).expect("an engine");
        engine.serve(&requests, None).expect("served");
        engine.prefix_looks()
    };
    for prompt in [10, 2000] {
        let more = looks(prompt, 300) - looks(prompt, 100);
        assert!(more <= 3 * 20 * 200, "{more} for {} tokens after {prompt}", 20 * 200);
    }
}

/// As first come, first served, but ranked like others.
struct Ranked(Fcfs);

impl QueuePolicy for Ranked {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn rank(
        &self,
        request: &crate::policy::Candidate<'_>,
        prefixes: &dyn crate::policy::PrefixView,
        now: Nanos,
    ) -> crate::policy::Rank {
        self.0.rank(request, prefixes, now)
    }
}

#[test]
fn requests_that_go_by_arrival_go_as_if_they_were_ranked() {
    let requests: Vec<Arrival> = (0..120_u32)
        .map(|number| {
            let (first, length) = (number % 7 * 1000, 5 + number * 37 % 60);
            let priority = if number % 5 == 0 { -1 } else { 0 };
            let urgency = crate::policy::Urgency { priority, ..Default::default() };
            let tokens = 1 + number as usize * 13 % 40;
            Arrival { urgency, ..arrival(u64::from(number) * 9, first..first + length, tokens) }
        })
        .collect();
    let run = |policy: Box<dyn QueuePolicy>| {
        let serving = Serving { policy, sequences_max: 8, ..serving(200, true) };
        serving.run(&requests, None).expect("served")
    };
    let (by_arrival, stats) = run(Box::new(Fcfs));
    assert!(stats.all.preempted > 0, "preempted requests go before those behind them");
    assert_eq!(by_arrival, run(Box::new(Ranked(Fcfs))).0);
}
