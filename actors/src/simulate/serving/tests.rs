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
