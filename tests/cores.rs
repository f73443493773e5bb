//! Compute threads run on the cores asked for. In a process of its own, whose threads are all known.
#![cfg(any(target_os = "linux", target_os = "android"))]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lapwing::devices::DeviceSpec;
use lapwing::{Engine, EngineBuilder, Request, Shutdown};
use lapwing_kernels::cpu::CoreSet;

fn builder() -> EngineBuilder {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    Engine::builder().model(model)
}

/// The cores that each thread of this process is allowed, by name.
fn allowed() -> BTreeMap<String, String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads of this process");
    let mut found = BTreeMap::new();
    for task in tasks.flatten() {
        // A thread may end meanwhile.
        let Ok(status) = std::fs::read_to_string(task.path().join("status")) else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.expect(name).trim().to_owned()
        };
        found.insert(field("Name:"), field("Cpus_allowed_list:"));
    }
    found
}

/// Waits until a thread of each name is there and allowed these cores: a thread names and pins itself once it runs, which may
/// be after the first answer.
async fn wait_for(expected: &BTreeMap<String, String>, text: &str) -> BTreeMap<String, String> {
    for _ in 0..6_000 {
        let allowed = allowed();
        if expected.iter().all(|(name, cores)| allowed.get(name) == Some(cores)) {
            return allowed;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{text}: {:?}, not {expected:?}", allowed());
}

async fn answer(engine: &Engine) -> Vec<u32> {
    let request = Request::text("some words").greedy().ignore_eos().max_tokens(8);
    let mut stream = engine.generate(request).await.expect("a stream");
    let mut ids = Vec::new();
    while let Some(token) = stream.next().await {
        ids.push(token.expect("a token").id);
    }
    ids
}

#[tokio::test]
async fn threads_run_on_the_cores_asked_for() {
    let available = CoreSet::available().expect("affinity");
    let (first, all) = (available.cores()[0], available.to_string());
    let one = first.to_string();
    let unpinned = builder().threads(2).build().await.expect("an engine");
    let ids = answer(&unpinned).await;
    unpinned.shutdown(Shutdown::Now).await.expect("an end");
    drop(unpinned);
    let every = available.cores().to_vec();
    let cases: [(Vec<usize>, usize, &str); 3] =
        [(vec![first], 1, &one), (vec![first], 2, &one), (every.clone(), every.len() + 1, &all)];
    for (cores, threads, expected) in cases {
        let text = format!("{threads} threads on cores {cores:?}");
        let engine = builder().cores(cores).threads(threads).build().await.expect("an engine");
        assert_eq!(answer(&engine).await, ids, "{text}");
        let helpers = (1..threads).map(|helper| format!("lapwing-cpu-{helper}"));
        let names = helpers.chain(["lapwing-cpu".to_owned()]);
        let pinned = names.map(|name| (name, expected.to_owned())).collect();
        let allowed = wait_for(&pinned, &text).await;
        assert_eq!(allowed["lapwing-schedul"], all, "{text}: the scheduler is not pinned");
        let kernels = &engine.placement().stages[0].kernels;
        assert!(kernels.contains(&format!("pinned to cores {expected} (")), "{kernels}");
        engine.shutdown(Shutdown::Now).await.expect("an end");
    }
    if let [a, b, ..] = every[..] {
        let devices = DeviceSpec::list("cpu+gpu").expect("devices");
        let engine = devices.into_iter().fold(builder(), EngineBuilder::device);
        let engine = engine.cores([b, a]).build().await.expect("an engine");
        assert_eq!(answer(&engine).await, ids, "on two devices");
        let pinned = [("lapwing-cpu", a), ("lapwing-gpu", b)];
        let pinned = pinned.map(|(name, core)| (name.to_owned(), core.to_string())).into();
        wait_for(&pinned, "two devices").await;
    }
}

#[tokio::test]
async fn an_engine_on_an_absent_core_is_refused() {
    let available = CoreSet::available().expect("affinity");
    let absent = available.cores().iter().max().expect("a core") + 1;
    let error = builder().cores([absent]).build().await.expect_err("an error");
    assert_eq!(error.kind(), lapwing::ErrorKind::Config);
    let expected = format!("there is no core {absent} for this process; it may use {available}");
    assert_eq!(error.to_string(), expected);
    let empty = builder().cores([]).build().await.expect_err("an error");
    assert!(empty.to_string().contains("name at least one core"), "{empty}");
}
