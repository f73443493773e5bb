//! Descriptions of systems: their contents and the ranges of their numbers.

use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::soc::SocOptions;
use lapwing_kernels::model::shape::ModelShape;
use lapwing_plan::soc::{Number, PARAMETERS, PRESETS, Range, Soc, SocError, SyncMode};
use lapwing_plan::strategy::registry;
use proptest::prelude::*;

use super::{of, run, sd8gen3, short, try_run};

#[test]
fn a_description_loses_a_number_or_accepts_a_wrong_one() {
    for (name, _) in PRESETS {
        let soc = Soc::preset(name).expect("a preset");
        assert_eq!(
            Soc::from_toml(&soc.to_toml().expect("text")).expect("its own text"),
            soc,
            "{name}"
        );
        for (path, number) in soc.numbers() {
            let parameter = PARAMETERS.iter().find(|p| p.path == path).expect("is known");
            assert_eq!(number.unit, parameter.unit, "{name}: {path}");
            assert!(number.source.len() > 3, "{name}: {path} has no source");
            let text = toml::to_string(number).expect("a number");
            let kind = ["pinned", "derived", "assumed"].map(|kind| format!("kind = \"{kind}\""));
            assert!(kind.iter().any(|kind| text.contains(kind)), "{name}: {path}: {text}");
        }
        assert_eq!(soc.numbers().count(), PARAMETERS.len(), "{name}");
    }
    let text = sd8gen3().to_toml().expect("text");
    let wrong = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        Soc::from_toml(&changed).expect_err(to).to_string()
    };
    assert!(wrong("unit = \"TFLOP/s\"", "unit = \"GFLOP/s\"").contains("TFLOP/s"));
    assert!(wrong("[sync.fast]", "[sync.quick]").contains("sync.quick"));
    assert!(wrong("value = 400.0", "value = -400.0").contains("between 0 and"));
    assert!(sd8gen3().set("npu.rat", 1.0).expect_err("no such").to_string().contains("npu.rat"));
    assert!(Soc::preset("phone").expect_err("no such").to_string().contains("fast-gpu"));
}

/// The roles that the design gives: fitted numbers, and those that say nothing new.
#[test]
fn a_number_that_was_fitted_is_passed_off_as_another() {
    let soc = sd8gen3();
    let role = |path: &str| soc.number(path).expect(path).kind.to_string();
    let pinned = [
        "gpu.rate",
        "gpu.weight_time",
        "gpu.bandwidth",
        "gpu.small_rate",
        "npu.rate",
        "npu.wide_rate",
        "npu.wide_rows",
        "npu.bandwidth",
        "npu.prepare_short",
        "npu.prepare_long",
        "npu.launch",
        "cpu.rate",
        "cpu.bandwidth",
        "sync.fast",
        "power.gpu",
        "power.npu",
        "power.co_run",
        "renderer.time",
    ];
    for (path, _) in soc.numbers() {
        assert_eq!(role(path) == "pinned", pinned.contains(&path), "{path}: {}", role(path));
    }
    for name in ["ideal", "fast-gpu"] {
        let (changed, about) = (Soc::preset(name).expect("a preset"), "differs from its base");
        let own = |(path, number): &(&str, &Number)| soc.number(path) != Some(*number);
        let own: Vec<(&str, &Number)> = changed.numbers().filter(own).collect();
        assert!(!own.is_empty());
        own.iter()
            .for_each(|(path, n)| assert_eq!(n.kind.to_string(), "assumed", "{path} {about}"));
    }
}

/// Nothing that was fitted to one chip is more than an assumption about another.
#[test]
fn a_number_of_another_chip_is_passed_off_as_known() {
    for (name, _) in &PRESETS[3..] {
        let soc = Soc::preset(name).expect("a preset");
        for (path, number) in soc.numbers() {
            let says = number.source.starts_with("known: ") || number.source.contains("sd8gen3");
            assert!(number.kind.to_string() == "assumed" && says, "{name}: {path}: {number:?}");
        }
    }
}

#[test]
fn a_value_that_stops_virtual_time_is_accepted() {
    let refused = [
        ("renderer.period", f64::INFINITY),
        ("renderer.period", 1e-7),
        ("renderer.period", 0.09),
        ("renderer.time", 16.7),
        ("renderer.time", 33.4),
        ("renderer.time", f64::INFINITY),
        ("renderer.period", 2.95),
        ("gpu.rate", 1e-7),
        ("gpu.rate", 0.0),
        ("gpu.rate", f64::NAN),
        ("sync.copy", 1.1e9),
        ("sync.copy", f64::INFINITY),
        ("npu.tile", 32.5),
        ("npu.tile", 0.0),
        ("npu.tile", 65_537.0),
        ("npu.prepare_long", 1.1e6),
        ("noise.spread", 1.1),
        ("memory.element_bytes", f64::INFINITY),
        ("power.base", -1.0),
    ];
    let text = sd8gen3().to_toml().expect("text");
    for (path, value) in refused {
        let mut soc = sd8gen3();
        let error = soc.set(path, value).expect_err(path);
        let known = matches!(error, SocError::Value { .. } | SocError::Renderer { .. });
        assert!(known && soc == sd8gen3(), "{path} = {value}: {error}");
        let before = sd8gen3().value(path).expect(path);
        let (section, name) = path.split_once('.').expect("a path");
        let mut file: toml::Table = toml::from_str(&text).expect("its own text");
        let number = &mut file[section][name]["value"];
        assert_eq!(number.as_float(), Some(before));
        *number = toml::Value::Float(value);
        let read = Soc::from_toml(&toml::to_string(&file).expect("a file"));
        assert_eq!(read.expect_err(path).to_string(), error.to_string());
    }
    for parameter in PARAMETERS {
        for value in [-1.0, 1e-9, 0.3, 7.2, 1e12] {
            let near = Soc::nearest_value(parameter.path, value).expect("is known");
            assert!(parameter.range.contains(near), "{}: {value} {near}", parameter.path);
            assert!(near == value || !parameter.range.contains(value), "{}", parameter.path);
        }
    }
    let mut soc = sd8gen3();
    for (path, value) in [("gpu.rate", f64::INFINITY), ("npu.tile", 1.0), ("renderer.time", 0.0)] {
        soc.set(path, value).expect(path);
    }
}

/// A frame of nearly the whole period, and a late frame that ends when the next one is due.
#[test]
fn a_kernel_that_waits_for_a_frame_never_starts() {
    let model = short(&ModelShape::all()[0]);
    for (period, time) in [(0.1, 0.099_999), (16.0, 15.999_999), (1.0, 0.5), (0.1, 0.0)] {
        let mut soc = sd8gen3();
        soc.set("renderer.time", 0.0).expect("a number");
        soc.set("renderer.period", period).expect("a number");
        soc.set("renderer.time", time).expect("a number");
        let options = SocOptions { renderer: true, decode: 2, ..of(20) };
        let outcome = run(&model, &soc, "gpu-only", &options);
        let alone = run(&model, &soc, "gpu-only", &SocOptions { renderer: false, ..options });
        // Each kernel waits for at most one frame within one period.
        let kernels = model.workload.graph.nodes().len() as f64 * 3.0;
        let most = alone.makespan_ms + (kernels + 1.0) * (time + period);
        assert!(outcome.makespan_ms <= most, "{period} {time}: {}", outcome.makespan_ms);
    }
}

#[test]
fn a_run_beside_a_game_goes_on_for_ever() {
    let mut soc = sd8gen3();
    soc.set("npu.rate", 1e-6).expect("a number");
    let options = SocOptions { renderer: true, decode: 0, ..of(64) };
    let model = short(&ModelShape::all()[0]);
    let error = try_run(&model, &soc, "layer-level", &options).expect_err("too long");
    assert!(matches!(error, SocRunError::TooLong { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Minimum and maximum values of a description, several at once.
    #[test]
    fn an_extreme_number_overflows_virtual_time(
        shape in 0..6usize,
        strategy in 0..64usize,
        rows in prop_oneof![1..700usize, Just(1 << 16)],
        extremes in proptest::collection::vec((0..PARAMETERS.len(), proptest::bool::ANY), 1..6),
        slow in proptest::bool::ANY,
    ) {
        let mut soc = sd8gen3();
        for (at, high) in extremes {
            let value = match PARAMETERS[at].range {
                Range::Rate => if high { f64::INFINITY } else { Range::RATE_MIN },
                Range::Between(from, to) => if high { to } else { from },
                Range::Whole(from, to) => f64::from(if high { to } else { from }),
            };
            // A frame must stay shorter than its period.
            if soc.set(PARAMETERS[at].path, value).is_err() {
                prop_assert!(PARAMETERS[at].path.starts_with("renderer."));
            }
        }
        let strategies: Vec<&str> = registry().iter().map(|known| known.name()).collect();
        let strategy = strategies[strategy % strategies.len()];
        let sync = if slow { SyncMode::Slow } else { SyncMode::Fast };
        let options = SocOptions { decode: 2, sync, planned_sync: sync, ..of(rows) };
        match try_run(&short(&ModelShape::all()[shape]), &soc, strategy, &options) {
            Ok(outcome) => prop_assert!(outcome.makespan_ms.is_finite()),
            Err(SocRunError::Plan(_) | SocRunError::TooLong { .. }) => {}
            Err(error) => prop_assert!(false, "{strategy}: {error}"),
        }
    }
}
