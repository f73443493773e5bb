//! The rules of E2.

use super::*;

fn numbers(router: &Router) -> Vec<usize> {
    router.policy.numbers().into_iter().map(|(_, number)| number as usize).collect()
}

#[test]
fn more_cached_than_missing_is_exploited_and_anything_else_explored() {
    let mut router = Router::new("preble:balance=1000,decode=1000000000", &[1.0; 2]);
    assert_eq!(router.send("", &prompt(1, 160, (0, 16)), 0), 0);
    assert_eq!(router.send("", &prompt(2, 160, (1, 16)), 0), 1);
    for own in 2..6 {
        assert_eq!(router.send("", &prompt(1, 160, (own, 16)), 0), 0, "{own}");
    }
    assert_eq!(numbers(&router), [4, 0, 0, 2]);
    // 160 cached tokens are not more than 160 missing ones, and the other worker has less to do.
    assert_eq!(router.send("", &prompt(1, 160, (6, 160)), 0), 1);
    assert_eq!(numbers(&router), [4, 0, 0, 3]);
}

#[test]
fn the_heaviest_worker_gives_to_the_lightest() {
    let mut router = Router::new("preble", &[1.0; 2]);
    let to: Vec<usize> =
        (0..6).map(|own| router.send("", &prompt(1, 1600, (own, 16)), 0)).collect();
    assert!(to.contains(&1), "{to:?}");
    assert!(numbers(&router)[1] > 0);
}

#[test]
fn a_prefix_is_forgotten_after_three_minutes() {
    let mut router = Router::new("preble", &[1.0]);
    assert_eq!(router.send("", &prompt(1, 160, (0, 0)), 0), 0);
    router.end(0, 1, 2);
    assert_eq!(router.send("", &prompt(1, 160, (1, 0)), 170 * SECOND), 0);
    router.end(1, 170 * SECOND, 170 * SECOND + 1);
    assert_eq!(numbers(&router), [1, 0, 0, 1]);
    router.send("", &prompt(1, 160, (2, 0)), 351 * SECOND);
    assert_eq!(numbers(&router), [1, 0, 0, 2]);
}

#[test]
fn a_worker_whose_first_tokens_come_later_and_later_gives_a_prefix_away() {
    let mut router = Router::new("preble:balance=1000000", &[1.0; 2]);
    // The first worker has two prefixes, which take 0.16 and 0.64 s; the second one has another, which takes 0.16 s.
    for (number, (text, tokens, worker)) in
        [(1, 160, 0), (9, 160, 1), (2, 640, 0)].into_iter().enumerate()
    {
        assert_eq!(router.send("", &prompt(text, tokens, (0, 0)), 0), worker, "{text}");
        router.end(number, 1, SECOND);
    }
    let mut moved_at = None;
    for round in 1..80 {
        let at = round * 2 * SECOND;
        let worker = router.send("", &prompt(1, 160, (0, 0)), at);
        if worker == 1 {
            moved_at = Some(round);
            break;
        }
        let wait = if round < 25 { SECOND / 10 } else { SECOND / 2 };
        router.end(router.sent.len() - 1, at + wait, at + SECOND);
    }
    assert!(moved_at.is_some_and(|round| round >= 50), "{moved_at:?}");
    assert_eq!(numbers(&router)[1], 1);
    assert_eq!(router.send("", &prompt(1, 160, (0, 0)), 170 * SECOND), 1, "it stays there");
    assert_eq!(router.send("", &prompt(2, 640, (0, 0)), 170 * SECOND), 0);
}
