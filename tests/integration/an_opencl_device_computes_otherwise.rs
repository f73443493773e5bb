//! A real queue with its own memory gives the tokens of the CPU: alone, with layers on either side, and
//! with every strategy. The driver is whichever one this machine has; the whole test command runs this
//! with each of its drivers.
//!
//! All devices compute with activations in f32, so that only the order of sums differs.

use std::path::Path;
use std::sync::Arc;

use lapwing::devices::DeviceSpec;
use lapwing::plan::{
    ChunkShape, DeviceId, PlanError, PlanInput, PromptRows, Route, Stage, Strategy, strategies,
};
use lapwing::{Activations, Engine, EngineBuilder, ErrorKind, KvCopies, KvDtype, Shutdown};

use crate::a_strategy_changes_a_token::{CONTEXT, NPU, greedy, long_model};
use crate::support::{GEMMA3, SMOLLM2, model, needs, needs_driver};

const LENGTHS: [usize; 3] = [64, 300, 525];

fn with(model: &Path, devices: &str) -> EngineBuilder {
    let specs = DeviceSpec::list(devices).expect("devices");
    let builder = Engine::builder().model(model).context(CONTEXT).activations(Activations::F32);
    // Programs are compiled once for all engines.
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl");
    builder.packed_cache(programs).devices(specs)
}

/// The ids of the CPU alone for each length.
async fn wanted(model: &Path) -> Vec<Vec<u32>> {
    ids_of(&with(model, "cpu").build().await.expect("an engine")).await
}

async fn ids_of(engine: &Engine) -> Vec<Vec<u32>> {
    ids_of_lengths(engine, &LENGTHS).await
}

async fn ids_of_lengths(engine: &Engine, lengths: &[usize]) -> Vec<Vec<u32>> {
    let mut ids = Vec::new();
    for length in lengths {
        ids.push(greedy(engine, *length).await);
    }
    ids
}

/// Checks the tokens for the first lengths, all of which `wanted` usually has, and that no buffer stays in
/// use.
async fn check(builder: EngineBuilder, wanted: &[Vec<u32>], what: &str) -> Engine {
    let engine = builder.build().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    for (length, ids) in LENGTHS.into_iter().zip(wanted) {
        assert_eq!(&greedy(&engine, length).await, ids, "{what}, {length} tokens");
    }
    assert_eq!(engine.slots().in_use, 0, "{what} keeps slots");
    engine
}

#[tokio::test]
async fn every_strategy_gives_the_same_tokens_with_a_queue_among_the_devices() {
    needs_driver!(has_opencl);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let wanted = wanted(&model).await;
    for devices in [
        "gpu=opencl",
        "gpu=opencl:memory=copied",
        "cpu+gpu=opencl",
        "cpu+gpu=opencl:memory=copied",
        &format!("cpu+gpu=opencl+{NPU}"),
    ] {
        let mut ran = 0;
        for known in strategies() {
            let builder = with(&model, devices).strategy(known.name());
            let what = format!("{} on {devices}", known.name());
            match builder.clone().build().await {
                Ok(_) => {
                    ran += 1;
                    let engine = check(builder, &wanted, &what).await;
                    engine.shutdown(Shutdown::Drain).await.expect("an end");
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Config, "{what}: {error}"),
            }
        }
        assert!(ran > 0, "no strategy runs on {devices}");
    }
}

/// Whether an OpenCL device uses values and pages of the host in place.
fn is_in_place(engine: &Engine) -> bool {
    engine.device_kernels().iter().any(|kernels| kernels.contains("values in place"))
}

/// The rows of a chunk run on one device, by turns: each device continues sequences whose keys and values
/// the other one wrote.
pub(crate) struct ByTurns;

impl Strategy for ByTurns {
    fn name(&self) -> &str {
        "by-turns"
    }

    fn chunk_rows(&self, _: &PlanInput<'_>, prompt: PromptRows) -> usize {
        prompt.remaining.min(48)
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        // Contexts are planned in powers of two, each of which is the turn of the next device.
        let turn = (usize::BITS - shape.context.leading_zeros()) as usize;
        let device = DeviceId(turn % input.devices.len());
        let all = 0..input.graph.nodes().len();
        let reason = "by turns".to_owned();
        Route::new(vec![Stage::whole(device, all)], reason, None, input.route_for(shape))
    }
}

#[tokio::test]
async fn keys_and_values_of_one_side_are_seen_by_the_other() {
    needs_driver!(has_opencl);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let wanted = wanted(&model).await;
    for kv in [KvDtype::F32, KvDtype::F16] {
        // The second queue stands for another device: pages go from one to the other by the host. Only one of them uses
        // the host's pages in place.
        for devices in [
            "cpu+gpu=opencl",
            "cpu+gpu=opencl:memory=copied",
            "gpu=opencl+cpu+gpu-2=opencl",
            "gpu=opencl:memory=copied+cpu+gpu-2=opencl",
        ] {
            let builder = with(&model, devices).own_strategy(ByTurns).kv(kv);
            let what = format!("{devices}, {kv}");
            // Of f16 keys only their agreement with the same keys on the CPU is known.
            let wanted = match kv {
                KvDtype::F16 => wanted.clone(),
                _ => {
                    let engine = with(&model, "cpu").kv(kv).build().await.expect("an engine");
                    ids_of(&engine).await
                }
            };
            let engine = check(builder, &wanted, &what).await;
            let copied = engine.kv_copies();
            if devices == "cpu+gpu=opencl" && is_in_place(&engine) {
                assert_eq!(copied, KvCopies::default(), "{what}");
            } else {
                assert!(copied.to_device > 0 && copied.to_host > 0, "{what}: {copied:?}");
            }
            engine.shutdown(Shutdown::Drain).await.expect("an end");
        }
    }
    // Half-filled pages of the prefix cache are copied by the host.
    let alone = with(&model, "cpu+gpu=opencl").strategy("gpu-only").prefix_cache(false);
    let engine = check(alone, &wanted, "alone").await;
    assert_eq!(engine.kv_copies(), KvCopies::default(), "one device needs no copies");
}

/// The later layer of a group reads rows that the first layer wrote on another device, or that another
/// device wrote for earlier positions.
#[tokio::test]
async fn shared_keys_and_values_are_seen_wherever_they_were_written() {
    needs_driver!(has_opencl);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    for sharing in ["layers=2", "layers=2,heads=1"] {
        let with = |devices: &str| {
            let builder = with(&model, devices).kv(KvDtype::F32).prefix_cache(false);
            builder.share_kv(sharing.parse().expect("a sharing"))
        };
        let wanted = ids_of(&with("cpu").build().await.expect("an engine")).await;
        for memory in ["", ":memory=copied"] {
            let queue = with(&format!("gpu=opencl{memory}"));
            let both = format!("cpu+gpu=opencl{memory}");
            let split = with(&both).gpu_layers(1);
            let turns = with(&both).own_strategy(ByTurns);
            for (what, builder) in [("a queue", queue), ("a split", split), ("by turns", turns)] {
                let what = format!("{what}{memory}, {sharing}");
                let engine = check(builder, &wanted, &what).await;
                let copies = !what.starts_with("a queue") && !is_in_place(&engine);
                assert_eq!(engine.kv_copies().bytes > 0, copies, "{what}");
                engine.shutdown(Shutdown::Drain).await.expect("an end");
            }
        }
    }
}

/// The same tokens from real models, wholly on the device at two lengths; one split by layers near its ends, the other
/// in the middle.
#[tokio::test]
#[ignore = "long: sh tests/all.sh runs it"]
async fn a_real_model_gives_the_same_tokens_wherever_it_is_split() {
    needs_driver!(has_opencl);
    needs!(SMOLLM2, GEMMA3);
    // Layers on the device, and the number of lengths. All layers are the same division as the device alone.
    let splits = (&[(1, 2), (29, 1), (30, 1)][..], &[(9, 2)][..]);
    let models = [(SMOLLM2, 30, splits.0), (GEMMA3, 18, splits.1)];
    let lengths = &LENGTHS[..2];
    for (name, layers, splits) in models {
        let model = model(name);
        let on_cpu = with(&model, "cpu").build().await.expect("an engine");
        let wanted = ids_of_lengths(&on_cpu, lengths).await;
        let engine = check(with(&model, "gpu=opencl"), &wanted, name).await;
        let mut parts = engine.placement().stages.iter().flat_map(|stage| &stage.parts);
        assert!(parts.all(|part| part.device == "gpu"), "something runs elsewhere");
        engine.shutdown(Shutdown::Drain).await.expect("an end");
        for &(on_gpu, lengths) in splits {
            let builder = with(&model, "cpu+gpu=opencl").gpu_layers(on_gpu);
            let what = format!("{name}, {on_gpu} layers");
            let engine = check(builder, &wanted[..lengths], &what).await;
            let on_cpu = usize::from(on_gpu < layers);
            assert_eq!(engine.placement().stages.len(), 1 + on_cpu, "{on_gpu} layers");
            let transfers = if is_in_place(&engine) { 0 } else { on_cpu };
            assert_eq!(engine.placement().transfers.len(), transfers, "{on_gpu} layers");
        }
    }
}

#[tokio::test]
async fn a_device_that_is_not_there_is_an_error_that_lists_the_others() {
    needs_driver!(has_opencl);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    for which in ["99", "no such device"] {
        let builder = Engine::builder().model(&model).device(DeviceSpec::opencl("gpu", which));
        let error = builder.build().await.expect_err("no such device");
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = error.to_string();
        assert!(text.contains(which) && text.contains("found: 0 "), "{text}");
    }
}

/// A key that a device cannot obey is an error, and what it does by default is said.
#[tokio::test]
async fn memory_in_place_is_as_the_key_says() {
    needs_driver!(has_opencl);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let kernels = async |devices: &str| {
        let engine = with(&model, devices).build().await?;
        Ok::<_, lapwing::Error>(engine.device_kernels().to_vec())
    };
    let by_default = kernels("gpu=opencl").await.expect("an engine");
    let can = by_default[0].contains("values in place");
    let copied = kernels("gpu=opencl:memory=copied,persistent=off").await.expect("an engine");
    assert!(copied[0].contains("values copied (as memory=copied says)"), "{copied:?}");
    assert!(copied[0].contains("op by op (persistent=off)"), "{copied:?}");
    match kernels("gpu=opencl:memory=shared").await {
        Ok(shared) => assert_eq!(shared, by_default),
        Err(error) => assert!(!can && error.to_string().contains("in place"), "{error}"),
    }
    if can {
        let two = kernels("gpu=opencl+gpu-2=opencl:memory=shared").await.expect("an engine");
        assert!(two[0].contains("values copied (another device's memory"), "{two:?}");
        assert!(two[1].contains("values in place"), "{two:?}");
        let both = "gpu=opencl:memory=shared+gpu-2=opencl:memory=shared";
        let error = kernels(both).await.expect_err("one of them only").to_string();
        assert!(error.contains("gpu-2") && error.contains("another device's memory"), "{error}");
    }
}

#[tokio::test]
async fn a_damaged_program_is_compiled_anew_and_said() {
    needs_driver!(has_opencl);
    let folder = tempfile::tempdir().expect("folder");
    let model = long_model(folder.path());
    let start = || with(&model, "gpu=opencl").packed_cache(folder.path()).build();
    let notes = |engine: &Engine| engine.packed_weights().notes.clone();
    assert_eq!(notes(&start().await.expect("an engine")), [""; 0], "nothing is stored yet");
    let programs = std::fs::read_dir(folder.path().join("programs")).expect("programs");
    let mut programs: Vec<_> = programs.map(|file| file.expect("a file").path()).collect();
    // Measurements of kernels lie beside the programs.
    programs.retain(|path| path.extension().is_some_and(|extension| extension == "clbin"));
    assert!(programs.len() >= 3, "{programs:?}");
    assert_eq!(notes(&start().await.expect("an engine")), [""; 0], "all of them are used");
    let bytes = std::fs::read(&programs[0]).expect("a program");
    std::fs::write(&programs[0], &bytes[..bytes.len() - 1]).expect("a shorter program");
    let engine = start().await.expect("an engine");
    let [note] = &notes(&engine)[..] else { panic!("{:?}", notes(&engine)) };
    assert!(note.contains("was not used: it is damaged"), "{note}");
    assert_eq!(greedy(&engine, 64).await, wanted(&model).await[0]);
}
