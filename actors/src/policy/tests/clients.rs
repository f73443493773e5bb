//! Policies that divide service between clients: VTC, DLPM, and limits of requests.

use super::*;

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
