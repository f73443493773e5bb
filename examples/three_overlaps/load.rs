//! Streams that decode while prompts are read.

use std::path::Path;
use std::sync::Arc;

use lapwing::devices::DeviceSpec;
use lapwing::traces::{Analysis, OsClock, Recorder, RecorderConfig, Report, Scope, Timeline};
use lapwing::{Activations, Engine, EngineBuilder, Error, Prompt, Request, Shutdown, TokenStream};

/// One drafts, one has the steps of streams and attention, and one the matmuls of prompts.
pub(crate) const DEVICES: &str = "cpu=throttled:kind=cpu,gflops=0.2,gbps=0.025,submit=0,idle-submit=0,sync=0\
    +gpu=throttled:gflops=0.5,gbps=0.04,submit=0,idle-submit=0,sync=0\
    +npu=systolic:gflops=0.03,gbps=0.02,submit=0,idle-submit=0,sync=0,prepare=0,prepare-gweight=0";

/// An engine for a tiny model with values in f32, which is as exact on each device.
pub(crate) fn tiny(devices: &str) -> EngineBuilder {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
    let builder = Engine::builder().model(folder.join("llama.gguf")).context(256);
    builder.activations(Activations::F32).devices(DeviceSpec::list(devices).expect("devices"))
}

fn request(number: u32, length: u32, tokens: usize) -> Request {
    let ids = (0..length).map(|at| 3 + (at + number) * 7919 % 250).collect();
    Request::new(Prompt::Ids(ids)).greedy().max_tokens(tokens).ignore_eos().prefix_cache(false)
}

/// Two streams, and two prompts that fill most of the context.
pub(crate) fn load() -> Load {
    let streams = (0..2).map(|number| request(number, 8, 120)).collect();
    Load { streams, prompts: (0..2).map(|number| request(100 + number, 240, 1)).collect() }
}

/// What is asked.
pub(crate) struct Load {
    /// They come first.
    pub(crate) streams: Vec<Request>,
    /// They come once each stream has its first token.
    pub(crate) prompts: Vec<Request>,
}

/// A recorded run.
pub(crate) struct Run {
    /// From the first stream to the last token.
    pub(crate) timeline: Timeline,
    /// Of the timeline.
    pub(crate) analysis: Analysis,
    /// Of both.
    pub(crate) report: Report,
    /// Token ids of the streams, then those of the prompts.
    pub(crate) ids: Vec<Vec<u32>>,
}

/// Runs and records a load. What the first requests prepare, such as graphs, is not recorded.
pub(crate) async fn run(builder: EngineBuilder, load: Load) -> Result<Run, Error> {
    let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
    let engine = builder.wait_for_graphs(true).recorder(recorder.clone()).build().await?;
    let first = [load.prompts.first(), load.streams.first()];
    for request in first.into_iter().flatten() {
        engine.generate(request.clone().max_tokens(8)).await?.into_text().await?;
    }
    recorder.set_scope(Scope::All);
    let mut answers: Vec<(TokenStream, Vec<u32>)> = Vec::new();
    for request in load.streams {
        answers.push((engine.generate(request).await?, Vec::new()));
    }
    for (stream, ids) in &mut answers {
        ids.extend(stream.next().await.transpose()?.map(|token| token.id));
    }
    for request in load.prompts {
        answers.push((engine.generate(request).await?, Vec::new()));
    }
    for (stream, ids) in &mut answers {
        while let Some(token) = stream.next().await {
            ids.push(token?.id);
        }
    }
    // The actors record their last events before they end.
    engine.shutdown(Shutdown::Drain).await?;
    let timeline = Timeline::new(&recorder.recording());
    let analysis = Analysis::new(&timeline);
    let report = Report::new(&timeline, &analysis);
    let ids = answers.into_iter().map(|(_, ids)| ids).collect();
    Ok(Run { timeline, analysis, report, ids })
}
