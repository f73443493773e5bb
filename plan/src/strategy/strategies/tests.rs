//! Built-in and added strategies by name, with and without parameters.

use std::time::Duration;

use lapwing_kernels::device::ModelId;
use lapwing_kernels::graph::Graph;

use super::*;
use crate::chunk::PromptRows;
use crate::cost::Modelled;
use crate::strategy::{Chunked, CpuOnly, LayerSplit, OrderSwap, all};

/// Rows of the first chunk of a long prompt, without any device.
fn chunk_rows(strategy: &dyn Strategy) -> usize {
    let cost = Modelled { devices: Vec::new(), sync: Duration::ZERO, copy_rate: 1e9 };
    let graph = &Graph::default();
    let (model, cost, chunk_rows) = (ModelId::default(), &cost, 4096);
    let input = PlanInput { model, graph, devices: &[], cost, chunk_rows };
    strategy.chunk_rows(&input, PromptRows::new(10_000))
}

#[test]
fn every_name_creates_its_strategy() {
    let (known, options) = (Strategies::builtin(), StrategyOptions::default());
    for entry in registry() {
        let strategy = known.get(entry.name(), &options).expect("is known");
        assert_eq!(strategy.name(), entry.name());
        assert_eq!(registry().iter().filter(|other| other.name == entry.name).count(), 1);
        for parameter in entry.parameters() {
            assert!((parameter.from..=parameter.to).contains(&parameter.default));
        }
    }
    assert!(known.get("no-such-strategy", &options).is_err());
    assert_eq!(all(&options).len(), registry().len());
}

#[test]
fn a_parameter_comes_before_an_option_and_an_option_before_the_default() {
    let rows = |text: &str, chunk: Option<usize>| {
        let options = StrategyOptions { chunk, ..StrategyOptions::default() };
        let strategy = Strategies::builtin().get(text, &options).expect(text);
        assert_eq!(strategy.name(), text, "reports tell apart what differs in a parameter");
        chunk_rows(&*strategy)
    };
    assert_eq!(rows("chunked", None), 256);
    assert_eq!(rows("chunk-graph", None), 128);
    assert_eq!(rows("chunked", Some(64)), 64);
    assert_eq!(rows("chunked:chunk=512", None), 512);
    assert_eq!(rows("chunked:chunk=512", Some(64)), 512);
    assert_eq!(rows("chunk-graph:chunk=32", Some(64)), 32);
}

#[test]
fn wrong_parameters_are_named() {
    let rows = [
        ("cpu-only:x=1", "the strategy cpu-only has no parameter 'x'; it has none"),
        ("chunked:x=1", "the strategy chunked has no parameter 'x'; it has chunk"),
        (
            "chunked:chunk=0",
            "chunk of the strategy chunked is '0', but must be a number from 1 to 1000000",
        ),
        ("chunkd:chunk=1", "there is no strategy 'chunkd'; it must be one of cpu-only, gpu-only"),
        ("chunkd:chunk=1", "(did you mean chunked?)"),
    ];
    for (text, message) in rows {
        let error = Strategies::builtin().check(text).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn added_strategies_stand_beside_the_built_in_ones() {
    const ROWS: Parameter = Parameter::new("rows", "of a chunk", 48.0, 1.0..=96.0);
    let options = StrategyOptions::default();
    let both = Strategies::builtin().with("mine", "all on the CPU", |_| CpuOnly);
    let both = both.and_then(|both| both.with("half", "half of it", |_| LayerSplit));
    let both = both.expect("two names");
    let names: Vec<&str> = both.entries().iter().map(Entry::name).collect();
    assert!(names.starts_with(&["cpu-only"]) && names.ends_with(&["auto", "mine", "half"]));
    for name in names {
        let made = both.get(name, &options).expect("a strategy");
        assert_eq!(made.name(), name, "its registered name is the name in reports");
    }
    let candidates = both.candidates(&options);
    assert_eq!(candidates.len(), registry().len() + 1, "auto rates all but itself");
    assert!(candidates.iter().any(|candidate| candidate.name() == "mine"));
    let unknown = both.check("other").expect_err("unknown").to_string();
    assert!(unknown.contains("pipe") && unknown.contains("mine, half"), "{unknown}");
    assert!(Strategies::builtin().get("mine", &options).is_err(), "no global state");
    let more = both.with_parameters("small", "small chunks", &[ROWS], |_, parameters| {
        let (chunk, order_swap) = (parameters.count("rows"), OrderSwap::default());
        Chunked { chunk, order_swap }
    });
    let more = more.expect("a name");
    for (text, rows) in [("small", 48), ("small:rows=32", 32)] {
        let made = more.get(text, &options).expect(text);
        assert_eq!((made.name(), chunk_rows(&*made)), (text, rows));
    }
}

#[test]
fn a_name_is_refused_if_it_is_taken_or_breaks_a_list() {
    let mine = Strategies::builtin().with("mine", "", |_| CpuOnly).expect("a name");
    let kind = "strategy";
    for name in ["mine", "auto", "cpu-only"] {
        let error = mine.clone().with(name, "", |_| CpuOnly).expect_err(name);
        assert_eq!(error, NameError::Taken { kind, name: name.to_owned() });
    }
    for name in ["", "a,b", "a b", "a=b", "1:2"] {
        let error = mine.clone().with(name, "", |_| CpuOnly).expect_err(name);
        assert_eq!(error, NameError::Invalid { kind, name: name.to_owned() });
    }
}

#[test]
fn registries_with_different_strategies_have_different_identities() {
    let of = || Strategies::builtin().with("mine", "", |_| CpuOnly).expect("a name");
    let (a, b) = (of(), of());
    assert_ne!(a.identity(), b.identity());
    assert_eq!(a.identity(), a.clone().identity());
    assert_eq!(Strategies::builtin().identity(), "");
}
