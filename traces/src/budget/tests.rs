use serde_json::json;

use super::*;

fn report() -> Value {
    json!({
        "overlap": 0.5, "overlap_achievable": null, "idle_unattributed_ns": 0,
        "meta": {"model": "m"},
        "concurrent": {"draft+verify": 0.25, "draft+verify+prompt": 0.125, "decode": null},
        "makespan/bound": 1.2,
        "requests": {"ttft_ms": {"p95": 150.0}},
        "lanes": [{"name": "cpu", "utilization": 0.9, "idle": [{"cause": "dependency on gpu.0", "ns": 7}]},
                  {"name": "gpu.0", "utilization": 0.25}],
        "idle": [{"cause": "hand-off", "ns": 12}],
        "ops": [{"name": "down + residual", "self_ns": 5}, {"name": "up", "self_ns": 9},
                {"name": "gate + up", "self_ns": 7}, {"name": "a>=b", "self_ns": 3}],
        "waits": [{"name": "w", "histogram": [[10, 2]]}],
    })
}

#[track_caller]
fn check(text: &str) -> Result<Outcome, BudgetError> {
    Budget::parse(text).expect(text).check(&report())
}

#[test]
fn every_operator_compares_the_metric_with_the_bound() {
    let rows = [
        ("overlap>=0.5", 0.5, true),
        ("overlap > 0.5", 0.5, false),
        ("overlap<=0.5", 0.5, true),
        ("overlap<0.5", 0.5, false),
        (" overlap == 5e-1 ", 0.5, true),
        ("overlap!=0.5", 0.5, false),
        ("idle_unattributed_ns==0", 0.0, true),
        ("requests.ttft_ms.p95<200", 150.0, true),
        ("lanes.cpu.utilization>0.95", 0.9, false),
        ("overlap>-1", 0.5, true),
    ];
    for (text, value, ok) in rows {
        assert_eq!(check(text), Ok(Outcome { value, ok }), "{text}");
    }
}

#[test]
fn names_with_dots_and_operators_are_found() {
    let rows = [
        ("lanes.gpu.0.utilization<1", 0.25),
        ("lanes.cpu.idle.dependency on gpu.0.ns<10", 7.0),
        ("idle.hand-off.ns<20", 12.0),
        ("lanes.1.utilization<1", 0.25),
        ("ops.a>=b.self_ns<=3", 3.0),
        ("waits.w.histogram.0.1>1", 2.0),
        // An op of a fused group selects the group; an op of its own comes first.
        ("ops.down + residual.self_ns==5", 5.0),
        ("ops.residual.self_ns==5", 5.0),
        ("ops.gate.self_ns==7", 7.0),
        ("ops.up.self_ns==9", 9.0),
    ];
    for (text, value) in rows {
        assert_eq!(check(text), Ok(Outcome { value, ok: true }), "{text}");
    }
}

#[test]
fn a_text_that_is_not_a_budget_is_refused_with_the_reason() {
    let message = |text: &str| Budget::parse(text).expect_err(text).to_string();
    assert!(
        message("overlap").starts_with("'overlap' has no comparison"),
        "{}",
        message("overlap")
    );
    assert!(message("overlap=0.5").contains("has no comparison"));
    assert_eq!(message(">=1"), "'>=1' has no metric before '>='; write for example 'overlap>=0.6'");
    for text in ["a>=", "a<1ms", "a==inf", "a>nan", "a<0,5"] {
        assert!(message(text).contains("is not a number"), "{}", message(text));
    }
}

#[test]
fn an_unknown_or_absent_metric_is_an_error() {
    let message = |text: &str| check(text).expect_err(text).to_string();
    assert_eq!(
        message("overlap_achievable>0"),
        "metric 'overlap_achievable' has no value in this run: the run recorded nothing that \
         it measures"
    );
    assert!(
        message("overlpa>0").contains("; similar metrics: overlap"),
        "{}",
        message("overlpa>0")
    );
    assert!(message("requests>0").contains("similar metrics: requests.ttft_ms.p95"));
    let lane = message("lanes.cpo.utilization>0");
    assert!(
        lane.contains("similar metrics: lanes.cpu.utilization, lanes.gpu.0.utilization"),
        "{lane}"
    );
    assert!(message("lanes.cpu.name>0").contains("no metric"));
    assert_eq!(
        message("zzzzzzzzz>0"),
        "the report has no metric 'zzzzzzzzz'; see the JSON report for all metrics"
    );
}

#[test]
fn kinds_of_work_are_joined_in_any_order() {
    for text in [
        "concurrent.draft+verify>=0.25",
        "concurrent.verify+draft==0.25",
        "concurrent.prompt + draft + verify==0.125",
        "makespan/bound<=1.25",
    ] {
        assert!(check(text).is_ok_and(|outcome| outcome.ok), "{text}");
    }
    let refused = check("a.concurrent.draft+embed>0").expect_err("no kind");
    let message = "'embed' in 'a.concurrent.draft+embed' is no kind of work; the kinds are draft, verify, \
                   decode, prompt, joined by +";
    assert_eq!(refused.to_string(), message);
    assert!(matches!(check("concurrent.decode>0"), Err(BudgetError::Absent { .. })));
    assert!(matches!(check("concurrent.draft+draft>0"), Err(BudgetError::Unknown { .. })));
}

#[test]
fn a_budget_printed_parses_back_to_itself() {
    for text in ["overlap >= 0.6", "a.b != -3", "x < 1000000"] {
        assert_eq!(Budget::parse(text).expect(text).to_string(), text);
    }
}
