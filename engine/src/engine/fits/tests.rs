//! What a header predicts is what an engine of the same model has.

use std::path::PathBuf;

use lapwing_kernels::weights::GgufWriter;

use super::*;
use crate::Engine;
use crate::error::ErrorKind;

fn tiny(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny").join(name)
}

fn fit(builder: &EngineBuilder, header: &ModelHeader) -> Result<Fit, Error> {
    let mut options = FitOptions { prompt: 40, ..FitOptions::default() };
    options.limits.runs = 1;
    builder.fit_here(header, &options, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn throttled_devices_are_predicted_as_an_engine_of_the_model_predicts() {
    for (name, devices) in [
        ("llama.gguf", "phone"),
        ("gemma2.gguf", "cpu=throttled:kind=cpu+gpu=throttled"),
        ("qwen3.gguf", "gpu=throttled:gflops=3,gbps=2"),
        ("llama-split-00002-of-00003.gguf", "cpu=throttled:kind=cpu"),
    ] {
        let devices = || DeviceSpec::list(devices).expect("devices");
        let builder = || Engine::builder().devices(devices()).context(64);
        let header = ModelHeader::open(&tiny(name)).expect("a header");
        let fit = fit(&builder(), &header).expect("a fit");
        let engine = builder().model(tiny(name)).build_blocking().expect("an engine");
        let Speed { prompt, first_token, step, step_at_context } = fit.speed;
        assert_eq!(engine.predict(prompt).expect("a plan"), Some(first_token), "{name}");
        for (context, step) in [(0, step), (63, step_at_context)] {
            let placed = engine.plan_decode(1, context).expect("a plan");
            assert_eq!(placed.predicted, step, "{name} after {context}");
        }
        assert!(step < step_at_context, "{name}: {:?}", fit.speed);
        assert!(fit.rates.contains("throttled to"), "{}", fit.rates);
    }
}

#[test]
fn memory_is_that_of_an_engine_of_the_model() {
    for name in ["llama.gguf", "format-q4_k.gguf", "gemma3.gguf"] {
        let builder = || Engine::builder().threads(1).context(64);
        let header = ModelHeader::open(&tiny(name)).expect("a header");
        let fit = fit(&builder(), &header).expect("a fit");
        let engine = builder().model(tiny(name)).build_blocking().expect("an engine");
        let [host] = &fit.memory[..] else { panic!("{fit:?}") };
        let packed = engine.packed_use().own_bytes as u64;
        // Norms are kept in f32 beside the packed matrices.
        assert!((packed..packed + packed / 4).contains(&host.weights), "{name}: {packed} {host:?}");
        assert_eq!(host.buffers, engine.slots().bytes as u64, "{name}");
        let config = engine.model();
        let heads = &config.heads[0].kv;
        let of_token = 2 * 2 * config.layers * heads.count * heads.key_dim;
        assert_eq!(host.kv, 64 * of_token as u64, "{name}");
        assert_eq!((fit.context, fit.trained_context), (64, config.context));
        if let Some(free) = host.free {
            assert_eq!(fit.fits(), Some(host.needed() <= free));
            // A tiny model runs with all of its context.
            assert_eq!(fit.largest_context, Some(config.context));
        }
    }
}

#[test]
fn a_layer_that_drafts_by_default_is_counted() {
    let builder = |draft: &str| {
        let draft = draft.parse().expect("a drafter");
        Engine::builder().threads(1).context(64).draft(draft)
    };
    let name = "qwen35-mtp.gguf";
    let header = ModelHeader::open(&tiny(name)).expect("a header");
    let host = |draft: &str| {
        let fit = fit(&builder(draft), &header).expect("a fit");
        let [host] = &fit.memory[..] else { panic!("{fit:?}") };
        (host.weights, host.kv, fit.notes.iter().any(|note| note.contains("--draft none")))
    };
    let ((with, kv_with, is_noted), (without, kv_without, is_other)) = (host("auto"), host("none"));
    assert!(is_noted && !is_other);
    let packed = |draft: &str| {
        let engine = builder(draft).model(tiny(name)).build_blocking().expect("an engine");
        let heads = engine.model().heads.iter().map(|heads| heads.kv.count * heads.kv.key_dim);
        (engine.packed_use().own_bytes as u64, heads.max().expect("layers"))
    };
    let ((both, key), (alone, _)) = (packed("auto"), packed("none"));
    let (layer, found) = (both - alone, with - without);
    // Norms are kept in f32 beside the packed matrices.
    assert!((layer..layer + layer / 4).contains(&found), "{found} of {layer} bytes");
    assert_eq!(kv_with - kv_without, (64 * 2 * 2 * key) as u64);
    let llama = ModelHeader::open(&tiny("llama.gguf")).expect("a header");
    let notes = fit(&builder("auto"), &llama).expect("a fit").notes;
    assert!(!notes.iter().any(|note| note.contains("--draft none")), "{notes:?}");
}

#[test]
fn a_native_device_is_measured_and_the_measurement_can_be_cancelled() {
    let header = ModelHeader::open(&tiny("llama.gguf")).expect("a header");
    let builder = Engine::builder().threads(1).context(64);
    let fit = fit(&builder, &header).expect("a fit");
    assert!(fit.rates.starts_with("measured now on "), "{}", fit.rates);
    assert!(fit.rates.ends_with("of 2 of the 2 layers"), "{}", fit.rates);
    assert!(fit.speed.first_token > Duration::ZERO && fit.tokens_per_second() > Some(0.0));
    assert!(fit.notes.is_empty(), "every op is measured: {:?}", fit.notes);
    let stopped =
        builder.fit_here(&header, &FitOptions::default(), &mut |_| ControlFlow::Break(()));
    assert!(stopped.expect_err("it was cancelled").is_cancelled());
}

#[test]
fn a_profile_of_another_model_is_refused_and_its_own_takes_the_place_of_measuring() {
    let builder = || Engine::builder().threads(1).context(64);
    let limits = FitOptions::default().limits;
    let profile = builder().model(tiny("llama.gguf"));
    let profile = profile.measure_blocking(limits, &mut |_| ControlFlow::Continue(()));
    let with = builder().profile(profile.expect("a profile"));
    let own = ModelHeader::open(&tiny("llama.gguf")).expect("a header");
    let mut steps = 0;
    let fit = with.fit_here(&own, &FitOptions::default(), &mut |_| {
        steps += 1;
        ControlFlow::Continue(())
    });
    let fit = fit.expect("a fit");
    assert!(steps == 0 && fit.rates.starts_with("the profile of this model"), "{}", fit.rates);
    let engine = with.clone().model(tiny("llama.gguf")).build_blocking().expect("an engine");
    assert_eq!(engine.predict(63).expect("a plan"), Some(fit.speed.first_token));
    let other = ModelHeader::open(&tiny("qwen3.gguf")).expect("a header");
    let refused = self::fit(&with, &other).expect_err("of another model");
    assert!(refused.to_string().contains("model"), "{refused}");
}

#[test]
fn what_is_not_supported_is_named_and_settings_without_a_meaning_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.gguf");
    let mut bytes = Vec::new();
    GgufWriter::new().meta("general.architecture", "mamba9").write_to(&mut bytes).expect("written");
    std::fs::write(&path, bytes).expect("written");
    let header = ModelHeader::open(&path).expect("a header");
    assert_eq!(header.architecture(), Some("mamba9"));
    let error = fit(&Engine::builder(), &header).expect_err("an unknown architecture");
    assert!(error.is_unsupported() && error.to_string().contains("'mamba9'"), "{error}");

    let header = ModelHeader::open(&tiny("llama.gguf")).expect("a header");
    let context = fit(&Engine::builder().context(1 << 20), &header).expect_err("too long");
    assert!(!context.is_unsupported() && context.kind() == ErrorKind::Config, "{context}");
    let draft = crate::draft::DraftChoice::model("draft.gguf");
    let draft = fit(&Engine::builder().draft(draft), &header).expect_err("no draft model");
    assert!(draft.to_string().contains("leave it out"), "{draft}");
}
