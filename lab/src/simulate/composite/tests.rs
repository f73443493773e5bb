//! Tests of scenarios with many requests.

use lapwing_actors::draft::DraftStats;
use lapwing_traces::Timeline;
use lapwing_traces::analysis::{Concurrent, WorkKind, WorkSet};

use super::*;

/// Devices of a phone, a model and a draft model a hundredth of the size of those on a phone.
fn composite(text: &str) -> Composite {
    let mut scenario = Scenario::new("phone").expect("a preset");
    scenario.set("model", "layers=8,dim=512,ffn=1536,heads=8,vocab=4096").expect("a shape");
    scenario.set("strategy", "pipe").expect("a strategy");
    Composite::new(scenario, requests(text).expect("requests"))
}

fn drafted(text: &str, rate: f64) -> Composite {
    let draft = DraftSettings {
        model: "layers=4,dim=384,ffn=768,heads=4,vocab=4096".to_owned(),
        device: None,
        acceptance: Acceptance::Independent { rate, seed: 0 },
        schedule: Schedule::Asynchronous,
        length: None,
        form: DraftForm::default(),
    };
    Composite { draft: Some(draft), ..composite(text) }
}

const BOTH: &str = "2x30+120,2x900+1@200ms";

fn counts(composite: &Composite) -> Vec<DraftStats> {
    let traffic = composite.traffic().expect("traffic");
    let Processors::Machine(machine) = composite.scenario.processors() else { panic!("a machine") };
    let replayed = machine::run::serve(&composite.scenario, machine, &traffic, false);
    let served = replayed.expect("a run").outcome.served;
    served.into_iter().map(|served| served.drafts.unwrap_or_default()).collect()
}

#[test]
fn equal_scenarios_have_equal_runs_to_the_byte() {
    let composite = drafted(BOTH, 0.7);
    let (run, recording) = composite.record().expect("a run");
    let (again, recorded) = composite.record().expect("a run");
    assert_eq!(run, again);
    assert_eq!(recording.to_bytes(), recorded.to_bytes());
    assert_eq!(run, composite.run().expect("a run"), "a recording changes nothing");
    let mut other = composite;
    let settings = other.draft.as_mut().expect("a draft model");
    settings.acceptance = Acceptance::Independent { rate: 0.7, seed: 2 };
    assert_ne!(run, other.run().expect("a run"), "another seed has other texts");
}

const STEP: [WorkKind; 2] = [WorkKind::Verify, WorkKind::Decode];

fn share(run: &CompositeRun, kinds: &[WorkKind]) -> f64 {
    run.share(WorkSet::of(kinds.iter().copied()))
}

#[test]
fn drafts_verification_and_prompts_run_at_once() {
    use WorkKind::{Draft, Prompt, Verify};
    let composite = drafted(BOTH, 0.9);
    let run = composite.run().expect("a run");
    assert!(share(&run, &[Draft, Verify, Prompt]) > 0.02, "{:?}", run.concurrent);
    let without = |overlaps| Composite { overlaps, ..composite.clone() }.run().expect("a run");
    let beside = |run: &CompositeRun| STEP.map(|step| share(run, &[step, Prompt]));
    let all = Overlaps::ALL;
    let apart = without(Overlaps { prompts: false, ..all });
    assert_eq!(beside(&apart), [0.0, 0.0], "{:?}", apart.concurrent);
    assert!(share(&apart, &[Draft, Verify]) > 0.0, "{:?}", apart.concurrent);
    let plain = without(Overlaps { drafts: false, ..all });
    assert_eq!((share(&plain, &[Draft]), share(&plain, &[Verify])), (0.0, 0.0));
    assert!(beside(&plain).iter().sum::<f64>() > 0.0, "{:?}", plain.concurrent);
    let whole = without(Overlaps { cuts: false, ..all });
    assert!(WHOLE.contains(&&*whole.strategy), "{}", whole.strategy);
    assert_eq!(run.concurrent.len(), 15);
    assert!(run.concurrent.values().all(|share| (0.0..=1.0).contains(share)), "{run:?}");
}

#[test]
fn what_runs_at_once_is_what_the_timeline_says() {
    for preset in ["phone", "sd8gen3"] {
        for strategy in ["pipe", "tensor-level"] {
            let mut composite = drafted("2x30+40,300+1@20ms", 0.8);
            let mut scenario = Scenario::new(preset).expect("a preset");
            scenario.model.clone_from(&composite.scenario.model);
            scenario.set("strategy", strategy).expect("a strategy");
            composite.scenario = scenario;
            let (run, recording) = composite.record().expect("a run");
            let timeline = Timeline::new(&recording);
            let recorded = Concurrent::new(&timeline);
            for set in WorkSet::all() {
                let (time, seen) = (run.share(set) * run.makespan_ms * 1e6, recorded.time(set));
                let seen = seen.expect("stages") as f64;
                assert!(
                    (time - seen).abs() < 1.0,
                    "{preset} {strategy} {}: {time} {seen}",
                    set.name()
                );
            }
            assert!(run.share(WorkSet::of([WorkKind::Draft])) > 0.0, "{preset} {strategy}");
        }
    }
}

#[test]
fn every_request_has_its_tokens_and_every_drafted_token_is_counted() {
    for rate in [0.0, 0.6, 1.0] {
        for overlaps in Overlaps::each() {
            let composite = Composite { overlaps, ..drafted("3x20+30,200+2@50ms", rate) };
            let run = composite.run().expect("a run");
            let tokens: Vec<usize> = run.requests.iter().map(|it| it.tokens).collect();
            assert_eq!(tokens, [30, 30, 30, 2], "{rate} {overlaps}");
            assert!(overlaps.drafts || run.drafted == 0, "{rate} {overlaps}");
        }
        let composite = drafted("3x20+30,200+2@50ms", rate);
        for (stats, tokens) in counts(&composite).iter().zip([30, 30, 30, 2]) {
            // Each step after the prompt's adds a token to those that it accepts.
            assert_eq!(1 + stats.steps + stats.accepted, tokens, "{rate} {stats:?}");
            let none_or_all = [(0.0, 0), (1.0, stats.drafted)];
            let expected = none_or_all.iter().find(|(of, _)| *of == rate);
            assert!(expected.is_none_or(|(_, accepted)| stats.accepted == *accepted), "{stats:?}");
        }
    }
}

/// Steps of four tokens each: three that are accepted, and one more.
#[test]
fn right_drafts_of_three_tokens_give_four_tokens_a_step() {
    let mut composite = drafted("4+41", 1.0);
    let settings = composite.draft.as_mut().expect("a draft model");
    (settings.schedule, settings.length) = (Schedule::Synchronous, Some(3));
    let stats = &counts(&composite)[0];
    assert_eq!((stats.steps, stats.drafted, stats.accepted), (10, 30, 30), "{stats:?}");
}

#[test]
fn wrong_drafts_cost_little_and_right_ones_gain_where_verification_is_cheap() {
    // Verification costs little where a step is divided, and the draft model is a fiftieth of the target.
    let mut with = drafted("20+120", 0.0);
    with.scenario.set("strategy", "tensor-level").expect("a strategy");
    with.draft.as_mut().expect("a draft model").model =
        "layers=2,dim=128,ffn=256,heads=2,vocab=4096".to_owned();
    let time = |rate| {
        let mut composite = with.clone();
        let settings = composite.draft.as_mut().expect("a draft model");
        settings.acceptance = Acceptance::Independent { rate, seed: 1 };
        composite.run().expect("a run").makespan_ms
    };
    let without = Composite { draft: None, ..with.clone() }.run().expect("a run").makespan_ms;
    let (wrong, right) = (time(0.0), time(1.0));
    assert!(wrong < 1.15 * without, "{wrong} {without}");
    assert!(right < 0.8 * without, "{right} {without}");
}

#[test]
fn a_request_alone_without_overlaps_is_the_plain_simulation() {
    for preset in ["phone", "sd8gen3"] {
        let mut scenario = Scenario::new(preset).expect("a preset");
        scenario.set("model", "layers=4,dim=512,ffn=1536,heads=8,vocab=4096").expect("a shape");
        (scenario.prompt, scenario.decode) = (300, 20);
        scenario.set("strategy", "gpu-only").expect("a strategy");
        scenario.set("device", "gpu+npu").expect("devices");
        let plain = scenario.run().expect("a run");
        let requests = requests("300+21").expect("requests");
        let composite = Composite::new(scenario, requests);
        let run = Composite { overlaps: Overlaps::NONE, ..composite }.run().expect("a run");
        assert_eq!(run.strategy, "gpu-only", "{preset}");
        assert_eq!(run.makespan_ms, plain.makespan_ms, "{preset}");
        assert_eq!(run.requests[0].ttft_ms, plain.prefill_ms, "{preset}");
    }
}

/// An agent in the background and a user, on an iGPU and an NPU.
fn agents(class: &str, devices: &str, strategy: &str) -> Composite {
    let mut scenario = Scenario::new("core-ultra-5-125h").expect("a preset");
    let model = "layers=4,dim=3072,ffn=8192,heads=24,kv-heads=8,vocab=4096,bits=8";
    let settings =
        [("model", model), ("device", devices), ("strategy", strategy), ("chunk", "256")];
    settings.iter().for_each(|(key, value)| scenario.set(key, value).expect(key));
    let text = format!("proactive:435+81@90/min*20s{class},reactive:213+40@20/min*20s");
    Composite::new(scenario, requests(&text).expect("requests"))
}

#[test]
fn a_user_waits_less_where_agents_are_background_work() {
    let of = |composite: &Composite, client: &str| {
        let run = composite.run().expect("a run");
        let ClientRun { response_per_token_ms: time, .. } = run.clients[client];
        (time.count, time.mean.expect("requests"))
    };
    for (devices, strategy) in [("gpu", "gpu-only"), ("gpu+npu", "chunked")] {
        let (plain, classes) =
            (agents("", devices, strategy), agents("^background", devices, strategy));
        let ((count, without), (same, with)) = (of(&plain, "reactive"), of(&classes, "reactive"));
        assert!(count == same && count > 3, "{devices}: {count} {same}");
        assert!(with < without, "{devices}: {with} {without}");
        let places = |sequences| Composite { sequences, ..classes.clone() };
        let [few, many] = [1, 64].map(|most| of(&places(most), "proactive").1);
        assert!(many < few, "{devices}: {many} {few}");
    }
}

#[test]
fn devices_of_one_memory_slow_each_other_down() {
    let time = |devices: &str, strategy: &str, memory: &str| {
        let mut composite = agents("", devices, strategy);
        composite.scenario.set("shared_memory", memory).expect("a number");
        composite.run().expect("a run").makespan_ms
    };
    let both = |memory| time("gpu+npu", "chunked", memory);
    assert!(both("70") > both("1e6"), "{} {}", both("70"), both("1e6"));
    // One device never asks for more than it can have.
    let alone = |memory| time("gpu", "gpu-only", memory);
    assert_eq!(alone("70"), alone("1e6"));
    assert!(alone("33.4") > alone("70"), "half of what its steps ask for");
}

#[test]
fn impossible_drafts_are_refused() {
    let refused = |change: fn(&mut DraftSettings), expected: &str| {
        let mut composite = drafted("4+4", 0.5);
        change(composite.draft.as_mut().expect("a draft model"));
        let error = composite.run().expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(|it| it.device = Some("npu".to_owned()), "cpu, gpu");
    refused(|it| it.length = Some(16), "1 to 15");
    refused(|it| it.acceptance = Acceptance::Independent { rate: 1.5, seed: 0 }, "acceptance");
    refused(|it| it.model = "gpt".to_owned(), "unknown model");
}
