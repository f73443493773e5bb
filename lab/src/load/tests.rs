use super::*;

mod experiments;
mod laws;
mod report;

fn approx(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

#[test]
fn a_line_that_is_no_request_is_named() {
    let good = r#"{"at":0.5,"client":"a","prompt_tokens":4,"output_tokens":2,"prefix":[["s",3]]}"#;
    let rows = [
        ("{", "line 2 is not a request: EOF"),
        (r#"{"at":0}"#, "missing field `prompt_tokens`"),
        (r#"{"at":-1,"prompt_tokens":4,"output_tokens":2}"#, "at is -1"),
        (r#"{"at":0,"prompt_tokens":0,"output_tokens":2}"#, "at least 1 token"),
        (r#"{"at":0,"prompt_tokens":4,"output_tokens":0}"#, "output_tokens must be at least 1"),
        (
            r#"{"at":0,"prompt_tokens":4,"output_tokens":2,"prefix":[["s",5]]}"#,
            "prefix has 5 tokens",
        ),
        (r#"{"at":0,"prompt_tokens":4,"output_tokens":2,"color":1}"#, "unknown field `color`"),
    ];
    for (bad, message) in rows {
        let text = format!("{good}\n{bad}\n");
        let error = Trace::read(text.as_bytes()).expect_err(bad).to_string();
        assert!(error.contains(message), "{bad}: {error}");
    }
}

#[test]
fn requests_are_sorted_and_come_back_as_they_were_written() {
    let client = LoadClient::new("a", Rate::Constant(3.0), 20, 5).sharing(SharedPrefixes {
        name: "s".to_owned(),
        count: 2,
        tokens: 8,
        zipf: 1.0,
    });
    let requests = generate(&[client], 20.0, 1);
    assert!(requests.len() > 30 && requests.is_sorted_by(|one, other| one.at <= other.at));
    let lines: Vec<String> =
        requests.iter().rev().map(|r| serde_json::to_string(r).expect("JSON")).collect();
    let mut read = Trace::read(lines.join("\n").as_bytes()).expect("requests").requests;
    for (read, request) in read.iter_mut().zip(&requests) {
        assert!(approx(read.at, request.at), "numbers are read with an error of one unit at most");
        read.at = request.at;
    }
    assert_eq!(read, requests);
}

#[test]
fn prompts_of_the_same_prefix_begin_alike_and_differ_after_it() {
    let request = |prefix: &[(&str, usize)]| LoadRequest {
        prefix: prefix.iter().map(|(name, tokens)| ((*name).to_owned(), *tokens)).collect(),
        ..LoadRequest::new(0.0, "", 40, 1)
    };
    let ids = |prefix: &[(&str, usize)], number| request(prefix).ids(number, &(100..30_000));
    let (a, b) = (ids(&[("s", 20), ("t", 10)], 1), ids(&[("s", 20), ("u", 10)], 2));
    assert!(a.len() == 40 && a.iter().all(|id| (100..30_000).contains(id)));
    assert_eq!(a[..20], b[..20]);
    assert!(a[20..].iter().zip(&b[20..]).filter(|(a, b)| a == b).count() < 3);
    assert_ne!(ids(&[], 1), ids(&[], 2));
}

#[test]
fn arrivals_follow_the_rate() {
    let count = |rate: Rate, from: f64, to: f64| {
        let requests = generate(&[LoadClient::new("a", rate, 1, 1)], 1000.0, 7);
        requests.iter().filter(|request| (from..to).contains(&request.at)).count() as f64
    };
    let on_off = Rate::OnOff { rate: 4.0, on: 10.0, off: 90.0 };
    let ramp = Rate::Ramp { from: 0.0, to: 8.0 };
    let steps = Rate::Steps(vec![1.0, 5.0]);
    let rows = [
        (Rate::Constant(2.0), 0.0, 1000.0, 2000.0),
        (on_off.clone(), 0.0, 1000.0, 400.0),
        (on_off, 10.0, 100.0, 0.0),
        (ramp.clone(), 0.0, 500.0, 1000.0),
        (ramp, 500.0, 1000.0, 3000.0),
        (steps.clone(), 0.0, 500.0, 500.0),
        (steps, 500.0, 1000.0, 2500.0),
        (Rate::Constant(0.0), 0.0, 1000.0, 0.0),
    ];
    for (rate, from, to, expected) in rows {
        let found = count(rate.clone(), from, to);
        // Five standard deviations of a Poisson count.
        assert!((found - expected).abs() <= 5.0 * expected.sqrt(), "{rate:?} {from}: {found}");
    }
}

#[test]
fn a_turn_begins_with_the_turns_before_it() {
    let shared = SharedPrefixes { name: "s".to_owned(), count: 1, tokens: 30, zipf: 0.0 };
    let client = LoadClient::new("a", Rate::Constant(0.1), 40, 5);
    let requests = generate(&[client.sharing(shared).talking(3, 2.0)], 1000.0, 3);
    let ids = |at: usize| requests[at].ids(at, &(0..30_000));
    let second = requests.iter().position(|r| r.prompt_tokens == 55).expect("a second turn");
    let (third, _) = (requests.iter().enumerate().skip(second + 1))
        .find(|(at, r)| r.prompt_tokens == 70 && ids(*at).starts_with(&ids(second)))
        .expect("a third turn begins with the second one");
    let first = (0..second).find(|at| ids(second).starts_with(&ids(*at))).expect("a first turn");
    assert_eq!((ids(first).len(), ids(third).len()), (40, 70));
    let other = (0..requests.len()).find(|at| *at != first && requests[*at].prompt_tokens == 40);
    let other = ids(other.expect("another conversation"));
    assert!(other[..30] == ids(first)[..30] && other[30..] != ids(first)[30..]);
    let count = |tokens| requests.iter().filter(|r| r.prompt_tokens == tokens).count();
    assert!(count(40) >= count(55) && count(55) >= count(70), "turns after the end are left out");
    assert!(count(70) > 50 && requests.iter().all(|r| r.at < 1000.0));
}
