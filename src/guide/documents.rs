//! The documents of the repository, as pages: what each number means, and why things are as they are.
//! [`index`] lists them with their readers.

/// Each document with its relative links leading to pages here.
macro_rules! documents {
    ($($name:ident: $($file:literal)+),* $(,)?) => {
        $(
            #[doc = include_str!("links.md")]
            $(#[doc = include_str!($file)])+
            pub mod $name {}
        )*
    };
}

documents! {
    index: "../../docs/README.md",
    contributing: "../../CONTRIBUTING.md",
    agents: "../../docs/agents.md",
    architecture: "../../docs/architecture.md",
    benchmarks: "../../docs/benchmarks.md",
    cluster: "../../docs/cluster.md",
    embeddings: "../../docs/embeddings.md",
    experts: "pictures/experts.md" "../../docs/experts.md",
    few_rows: "../../docs/few_rows.md",
    fit: "../../docs/fit.md",
    glossary: "../../docs/glossary.md",
    json: "../../docs/json.md",
    kernels: "../../docs/kernels.md",
    kv_events: "../../docs/kv_events.md",
    legacy: "../../docs/legacy.md",
    load: "../../docs/load.md",
    names: "../../docs/names.md",
    opencl: "../../docs/opencl.md",
    openvino: "../../docs/openvino.md",
    outliers: "../../docs/outliers.md",
    overlap: "pictures/overlap.md" "../../docs/overlap.md",
    policies: "../../docs/policies.md",
    prefixes: "../../docs/prefixes.md",
    qnn: "../../docs/qnn.md",
    serve: "../../docs/serve.md",
    simulation: "../../docs/simulation.md",
    sources: "../../docs/sources.md",
    speculation: "pictures/speculation.md" "../../docs/speculation.md",
    strategies: "../../docs/strategies.md",
    structured: "../../docs/structured.md",
    study: "../../docs/study.md",
    templates: "../../docs/templates.md",
    three_overlaps: "../../docs/three_overlaps.md",
    timeline: "../../docs/timeline.md",
    workers: "../../docs/workers.md",
}
