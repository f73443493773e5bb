//! A cost model of a program's own decides where a live engine runs what, and says so.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapwing::devices::DeviceSpec;
use lapwing::plan::{CostModel, CostSubject, Crossing, DeviceId, GraphKey, Job, Modelled};
use lapwing::prepare::PrepareOptions;
use lapwing::profile::Limits;
use lapwing::{Engine, EngineBuilder, ErrorKind, Request};

/// Microseconds of a device for each row of each node.
struct PerRow([u64; 2]);

impl CostModel for PerRow {
    fn source(&self) -> String {
        "microseconds per row".to_owned()
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        let rows = job.part.row_count(job.batch) * (job.end - job.first);
        Duration::from_micros(self.0[device.0] * rows as u64)
    }

    fn sync_time(&self, _: Crossing) -> Duration {
        Duration::ZERO
    }

    fn copy_time(&self, _: u64) -> Duration {
        Duration::ZERO
    }

    fn prepare_time(&self, _: DeviceId, _: &GraphKey) -> Duration {
        Duration::ZERO
    }
}

fn builder() -> EngineBuilder {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let devices = DeviceSpec::list("cpu+gpu=throttled:gflops=1e9,gbps=1e9").expect("devices");
    Engine::builder().model(model).context(64).devices(devices)
}

fn with(times: [u64; 2]) -> EngineBuilder {
    builder().cost_model(move |_: &CostSubject| PerRow(times))
}

#[test]
fn strategies_decide_by_its_times() {
    for (times, winner) in [([1, 100], "cpu-only"), ([100, 1], "gpu-only")] {
        let engine = with(times).strategy("auto").build_blocking().expect("an engine");
        let explained = engine.explain(20).expect("ratings");
        assert_eq!(explained.winner().strategy, winner);
        let chunk = &engine.plan(20).expect("a plan")[0];
        assert!(chunk.reason.starts_with(winner), "{}", chunk.reason);
        let law = Duration::from_micros(20 * chunk.stages[0].ops as u64);
        assert_eq!(engine.predict(20).expect("a prediction"), Some(law));
        assert_eq!(chunk.stages[0].parts[0].predicted, Some(law));
    }
}

#[test]
fn placements_say_whose_times_they_are() {
    let engine = with([1, 1]).strategy("auto").build_blocking().expect("an engine");
    let source = "the program's own cost model (microseconds per row)";
    assert_eq!(engine.cost_source(), source);
    let step = engine.plan_decode(1, 20).expect("a step");
    for placement in [engine.placement(), &engine.plan(9).expect("a plan")[0], &step] {
        assert_eq!(placement.times.as_deref(), Some(source));
        assert!(placement.to_string().contains(&format!("times of {source}")), "{placement}");
    }
    let plain = builder().build_blocking().expect("an engine");
    assert_eq!(plain.placement().times, None);
    assert!(plain.cost_source().contains("time models of the devices"));
}

#[tokio::test]
async fn it_is_made_for_the_engines_model_and_devices_and_changes_no_token() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let builder = {
        let seen = Arc::clone(&seen);
        builder().cost_model(move |of: &CostSubject| {
            let names: Vec<&str> = of.devices.iter().map(|device| &*device.name).collect();
            let subject = format!("{} graph, {}", of.graphs.len(), names.join(" and "));
            seen.lock().expect("no panic").push(subject);
            Modelled { sync: Duration::from_secs(1), ..of.models.clone() }
        })
    };
    let engine = builder.build().await.expect("an engine");
    let seen = seen.lock().expect("no panic").clone();
    assert_eq!(seen, ["1 graph, cpu and gpu"]);
    let plain = self::builder().build().await.expect("an engine");
    let mut answers = Vec::new();
    for engine in [engine, plain] {
        let request = Request::text("a few words").greedy().max_tokens(6);
        let stream = engine.generate(request).await.expect("a stream");
        answers.push(stream.into_text().await.expect("a text"));
    }
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn other_times_beside_it_are_an_error() {
    let limits = Limits { runs: 1, per_op: Duration::ZERO, per_device: Duration::ZERO };
    let measured = builder().measure_blocking(limits, &mut |_| ControlFlow::Continue(()));
    let options = PrepareOptions { prompts: vec![9], decode_rows: 1 };
    let ready = |builder: EngineBuilder| {
        builder.prepare_blocking(&options, &mut |_| ControlFlow::Continue(()))
    };
    let plans = ready(builder()).expect("plans").plans;
    for (what, refused) in [
        ("without profile", with([1, 1]).profile(measured.expect("a profile")).build_blocking()),
        ("without plans", with([1, 1]).plans(plans).build_blocking()),
    ] {
        let error = refused.map(drop).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("cost_model"), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    let error = ready(with([1, 1])).map(drop).expect_err("plans of these times");
    assert!(error.to_string().contains("cost_model"), "{error}");
}
