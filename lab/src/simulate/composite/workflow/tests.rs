//! Tests of workflows.

use lapwing_traces::analysis::{WorkKind, WorkSet};

use super::*;
use crate::simulate::{CompositeRun, RequestRun, requests};

const SMALL: &str = "layers=2,dim=256,ffn=512,heads=4,vocab=1000";

fn composite(text: &str, of: &str) -> Composite {
    let mut scenario = Scenario::new("phone").expect("a preset");
    scenario.set("model", "layers=8,dim=512,ffn=1536,heads=8,vocab=4096").expect("a shape");
    scenario.set("strategy", "gpu-only").expect("a strategy");
    let stages = stages(of).expect("stages");
    let workflow = Workflow { stages, critical_first: false };
    Composite { workflow, ..Composite::new(scenario, requests(text).expect("requests")) }
}

fn of<'a>(run: &'a CompositeRun, client: &str) -> Vec<&'a RequestRun> {
    run.requests.iter().filter(|request| request.client == client).collect()
}

#[test]
fn stages_are_read() {
    let text = "search=layers=2,dim=64@npu  answer>search+draft draft=qwen@cpu=1";
    let found = stages(text).expect("stages");
    let of = |client: &str, model: Option<&str>, device: Option<&str>, after: &[&str]| Stage {
        client: client.to_owned(),
        model: model.map(str::to_owned),
        device: device.map(str::to_owned),
        after: after.iter().map(|name| (*name).to_owned()).collect(),
    };
    let wanted = [
        of("search", Some("layers=2,dim=64"), Some("npu"), &[]),
        of("answer", None, None, &["search", "draft"]),
        of("draft", Some("qwen"), Some("cpu=1"), &[]),
    ];
    assert_eq!(found, wanted);
    for wrong in ["=a", "a>", "a>b+", "a=", "a=b@", "a@cpu", "a=@cpu"] {
        let error = stages(wrong).expect_err(wrong).to_string();
        assert!(error.contains("stages"), "{error}");
    }
}

#[test]
fn a_request_arrives_when_all_before_it_have_ended() {
    let stages = format!("search={SMALL}@cpu rank>search answer>rank+draft");
    let composite = composite("search:3x60+2,rank:40+1,answer:30+4,draft:20+9@40ms", &stages);
    let run = composite.run().expect("a run");
    let last = |client: &str| of(&run, client).iter().map(|it| it.end_ms).fold(0.0, f64::max);
    let arrived = |client: &str| of(&run, client)[0].at_ms;
    assert_eq!((arrived("search"), arrived("draft")), (0.0, 40.0));
    assert_eq!(arrived("rank"), last("search"));
    assert_eq!(arrived("answer"), last("rank").max(last("draft")));
    assert_eq!(run.makespan_ms, last("answer"));
    let tokens: Vec<usize> = run.requests.iter().map(|it| it.tokens).collect();
    assert_eq!(tokens.iter().sum::<usize>(), 3 * 2 + 1 + 4 + 9);
    let busy = |name: &str| run.devices.iter().find(|it| it.name == name).expect(name).busy_ms;
    assert!(busy("cpu") > 0.0 && busy("gpu") > 0.0, "{:?}", run.devices);
    assert_eq!(run, composite.run().expect("again"));
}

#[test]
fn the_longest_chain_goes_first() {
    let mut composite = composite("other:5x100+4,first:100+1,last:20+120", "last>first");
    composite.sequences = 1;
    let plain = composite.run().expect("a run");
    composite.workflow.critical_first = true;
    let critical = composite.run().expect("a run");
    let end = |run: &CompositeRun, client: &str| {
        of(run, client).iter().map(|it| it.end_ms).fold(0.0, f64::max)
    };
    assert!(end(&plain, "first") > end(&plain, "other"), "{plain:?}");
    assert!(end(&critical, "last") < 0.7 * end(&plain, "last"), "{critical:?}");
    // One was admitted before the others had arrived, and one before the end of the first let the last arrive.
    let last = end(&critical, "last");
    let before = of(&critical, "other").into_iter().filter(|it| it.end_ms < last);
    assert_eq!(before.count(), 2, "{critical:?}");
}

#[test]
fn chunks_wait_where_others_take_the_bandwidth() {
    let mut composite = composite("a:2x30+40,b:4x300+2@20ms", "");
    composite.scenario.set("strategy", "pipe").expect("a strategy");
    let beside = |run: &CompositeRun| {
        let steps = [WorkKind::Verify, WorkKind::Decode];
        let share = |step| run.share(WorkSet::of([step, WorkKind::Prompt]));
        steps.map(share).iter().sum::<f64>()
    };
    let free = composite.run().expect("a run");
    composite.bandwidth_limit = Some(f64::INFINITY);
    assert_eq!(free, composite.run().expect("a run"), "no limit changes nothing");
    composite.bandwidth_limit = Some(1e-3);
    let held = composite.run().expect("a run");
    assert!(beside(&free) > 0.0 && beside(&held) < beside(&free), "{free:?} {held:?}");
    let tokens = |run: &CompositeRun| run.requests.iter().map(|it| it.tokens).collect::<Vec<_>>();
    assert_eq!(tokens(&free), tokens(&held));
}

#[test]
fn impossible_workflows_are_refused() {
    let rows = [
        ("a:3+3", "b>a", "the name of requests"),
        ("a:3+3", "a>b", "the name of requests"),
        ("a:3+3,b:3+3", "a>b b>a", "never ends before it"),
        ("a:3+3", "a>a", "never ends before it"),
        ("a:3+3", "a=gpt", "unknown model"),
        ("a:3+3", &format!("a={SMALL}@npu"), "cpu, gpu"),
        ("a:3+3,b:3+3", "a>b a>b", "one stage"),
    ];
    for (requests, stages, says) in rows {
        let error = composite(requests, stages).run().expect_err(stages).to_string();
        assert!(error.contains(says), "{stages}: {error}");
    }
}
