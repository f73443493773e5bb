//! `bench` at a depth: tokens after others in the KV cache.
#![cfg(unix)]

use std::fs;

use crate::a_peer_misleads::{HONEST, assert_fails, bench, program};
use crate::support::ended;

#[test]
fn a_depth_is_that_of_both_engines() {
    let folder = tempfile::tempdir().expect("folder");
    let fake = program(folder.path(), "fake", HONEST);
    let vs = format!("llama.cpp={fake}");
    let args = ["-p", "0", "-n", "4", "-d", "0,4", "-r", "1", "--vs", &vs, "--json"];
    let report = ended(bench(&args)).json();
    let tests = |engine: usize| {
        let results = report["engines"][engine]["results"].as_array().expect("results");
        results.iter().map(|result| result["test"].clone()).collect::<Vec<_>>()
    };
    assert_eq!([tests(0), tests(1)], [["tg4", "tg4@d4"], ["tg4", "tg4@d4"]], "{report}");
    let calls = fs::read_to_string(format!("{fake}.calls")).expect("calls");
    assert!(calls.contains("-p 0 -n 4 -t 1 -fa 1 -r 1 -o json -d 0,4"), "{calls}");
}

/// At a depth, a prompt's time is a difference of two times. On a busy machine it can be none.
#[test]
fn a_prompt_at_a_depth_has_a_speed_or_says_that_the_machine_is_busy() {
    let call = ended(bench(&["-p", "160", "-n", "0", "-d", "4", "-r", "1", "--json"]));
    if call.code == Some(1) {
        return assert_fails(&call, &["pp160@d4", "took no longer than 4", "free the machine"]);
    }
    let result = &call.json()["results"][0];
    assert_eq!(result["test"], "pp160@d4", "{result}");
    assert!(result["tokens_per_second"]["median"].as_f64() > Some(0.0), "{result}");
}
