//! A layer of a model's file that predicts a further token drafts, and changes no bit of an answer: with any schedule, in company, on several
//! devices, behind cached prefixes and after preemption.

use std::path::Path;

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, DraftStats, Schedule};
use lapwing::{Engine, EngineBuilder, ErrorKind, Prompt, Requant, Request};

use crate::a_strategy_changes_a_token::NPU;

pub(crate) const MODELS: [&str; 4] = ["qwen35-mtp", "glm4moe", "bailingmoe3", "step35"];

pub(crate) fn builder(name: &str) -> EngineBuilder {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny");
    Engine::builder().model(tiny.join(format!("{name}.gguf"))).threads(2).chunk_rows(20)
}

fn prompt(len: u32, step: u32) -> Vec<u32> {
    (0..len).map(|at| (at * at + step * at + step) % 128).collect()
}

pub(crate) fn prompts() -> Vec<Vec<u32>> {
    [(1, 3), (2, 4), (33, 5), (64, 7), (90, 9)].map(|(len, step)| prompt(len, step)).to_vec()
}

fn request(ids: &[u32], number: usize) -> Request {
    let request = Request::new(Prompt::Ids(ids.to_vec())).ignore_eos().max_tokens(40);
    match number % 2 {
        0 => request.greedy(),
        _ => request.seed(number as u64).temperature(0.9),
    }
}

/// Ids and the bits of their log-probabilities.
pub(crate) type Answer = Vec<(u32, u32)>;

/// The answers to prompts that are asked at the same time, and what their drafts did.
pub(crate) async fn together(
    engine: &Engine,
    prompts: &[Vec<u32>],
) -> (Vec<Answer>, Vec<DraftStats>) {
    let mut streams = Vec::new();
    for (number, ids) in prompts.iter().enumerate() {
        streams.push(engine.generate(request(ids, number)).await.expect("a stream"));
    }
    let (mut answers, mut drafts) = (Vec::new(), Vec::new());
    for mut stream in streams {
        let mut answer = Vec::new();
        while let Some(token) = stream.next().await {
            let token = token.expect("a token");
            answer.push((token.id, token.logprob.to_bits()));
        }
        drafts.extend(stream.summary().expect("an end").drafts.clone());
        answers.push(answer);
    }
    (answers, drafts)
}

/// Checks an engine's answers, twice, the second time with whole prompts in the prefix cache. Returns what the drafts did.
async fn check(engine: &Engine, wanted: &[Answer], what: &str) -> Vec<DraftStats> {
    let mut all = Vec::new();
    for turn in 0..2 {
        let (found, drafts) = together(engine, &prompts()).await;
        assert_eq!(found, wanted, "{what}, turn {turn}");
        for drafts in &drafts {
            assert_eq!(drafts.stopped, None, "{what}");
        }
        all.extend(drafts);
    }
    assert!(all.iter().any(|drafts| drafts.drafted > 0), "{what}: nothing is drafted");
    all
}

#[tokio::test]
async fn answers_are_those_without_drafts() {
    let mtp = DraftChoice::predictor;
    for name in MODELS {
        let plain = builder(name).draft(DraftChoice::none()).build().await.expect("an engine");
        let (wanted, _) = together(&plain, &prompts()).await;
        let drafts = [mtp(), mtp().schedule(Schedule::Asynchronous), mtp().width(3)];
        for (number, draft) in drafts.into_iter().enumerate() {
            let engine = builder(name).draft(draft).build().await.expect("an engine");
            assert_eq!(engine.draft(), "mtp");
            check(&engine, &wanted, &format!("{name}, choice {number}")).await;
            // Room for the longest request and two pages more.
            let little = builder(name).context(160).cache_tokens(192);
            let engine = little.draft(mtp()).build().await.expect("an engine");
            check(&engine, &wanted, &format!("{name} in little memory")).await;
        }
    }
}

#[tokio::test]
async fn a_predictor_runs_on_another_device_than_its_model() {
    const DEVICES: &str = "cpu+gpu=throttled:gflops=40,gbps=8+cpu-2=throttled:gflops=40,gbps=8";
    for name in MODELS {
        let plain = builder(name).draft(DraftChoice::none()).build().await.expect("an engine");
        let (wanted, _) = together(&plain, &prompts()).await;
        for (device, schedule) in
            [("gpu", Schedule::Synchronous), ("cpu-2", Schedule::Asynchronous)]
        {
            let devices = DeviceSpec::list(DEVICES).expect("devices");
            let draft = DraftChoice::predictor().schedule(schedule).on_device(device);
            let engine = builder(name).devices(devices).draft(draft).build().await;
            check(&engine.expect("an engine"), &wanted, &format!("{name} on {device}")).await;
        }
    }
}

#[tokio::test]
async fn a_requantised_model_has_a_requantised_predictor() {
    for name in MODELS {
        let plain = builder(name).requant(Requant::Q8_0).draft(DraftChoice::none());
        let plain = plain.build().await.expect("an engine");
        let (wanted, _) = together(&plain, &prompts()).await;
        let draft = DraftChoice::predictor();
        let engine = builder(name).requant(Requant::Q8_0).draft(draft).build().await;
        check(&engine.expect("an engine"), &wanted, name).await;
    }
}

#[tokio::test]
async fn what_has_no_predictor_is_refused() {
    let draft = || DraftChoice::predictor();
    for (name, expected) in [("qwen35", "no layer that predicts"), ("llama", "nextn")] {
        let error = builder(name).draft(draft()).build().await.expect_err("a refusal");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let devices = DeviceSpec::list(&format!("cpu+{NPU}")).expect("devices");
    let on_npu = draft().on_device("npu");
    let engine = builder(MODELS[0]).devices(devices).draft(on_npu).build().await;
    let error = engine.expect_err("a refusal");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("given no hidden states: cpu"), "{error}");
}

/// The first token of each draft is right at the stated rate. How many drafts an answer has depends on measured times, so
/// answers are added until there are enough for the bound: 4 standard deviations.
#[tokio::test]
async fn a_stated_acceptance_is_kept() {
    const ENOUGH: usize = 60;
    let mtp = DraftChoice::predictor;
    let cases = [(mtp(), 0.0), (mtp(), 1.0), (mtp().schedule(Schedule::Asynchronous), 0.75)];
    for (draft, rate) in cases {
        let engine = builder("qwen35-mtp").draft(draft).build().await.expect("an engine");
        let (mut tried, mut accepted) = (0, 0);
        for seed in 0..200 {
            let stated = request(&prompt(20, 3), 0).seed(seed).draft_acceptance(rate);
            let mut stream = engine.generate(stated.max_tokens(90)).await.expect("a stream");
            while let Some(token) = stream.next().await {
                token.expect("a token");
            }
            let drafts = stream.summary().and_then(|summary| summary.drafts.clone());
            let first = drafts.expect("drafts").positions.first().copied().unwrap_or_default();
            (tried, accepted) = (tried + first.0, accepted + first.1);
            if tried >= ENOUGH {
                break;
            }
        }
        assert!(tried >= ENOUGH, "only {tried} drafts at {rate}");
        let share = accepted as f32 / tried as f32;
        let bound = 4.0 * (rate * (1.0 - rate) / tried as f32).sqrt();
        assert!((share - rate).abs() <= bound, "{accepted} of {tried} accepted at {rate}");
    }
}

#[tokio::test]
async fn an_acceptance_that_makes_no_sense_is_refused() {
    let engine = builder("qwen35-mtp").build().await.expect("an engine");
    for rate in [-0.1, 1.5, f32::NAN] {
        let wrong = request(&prompt(20, 3), 0).draft_acceptance(rate);
        let error = engine.generate(wrong).await.expect_err("no stream");
        assert_eq!(error.kind(), ErrorKind::Request, "{error}");
        assert!(error.to_string().contains("draft_acceptance"), "{error}");
    }
}
