//! Streams that decode while prompts are read.

use std::sync::Arc;

use lapwing::traces::{Analysis, OsClock, Recorder, RecorderConfig, Report, Scope, Timeline};
use lapwing::{EngineBuilder, Error, Request, Shutdown, TokenStream};

/// What is asked.
pub struct Load {
    /// They come first.
    pub streams: Vec<Request>,
    /// They come once each stream has its first token.
    pub prompts: Vec<Request>,
}

/// A recorded run.
pub struct Run {
    /// From the first stream to the last token.
    pub timeline: Timeline,
    /// Of the timeline.
    pub analysis: Analysis,
    /// Of both.
    pub report: Report,
    /// Token ids of the streams, then those of the prompts.
    pub ids: Vec<Vec<u32>>,
}

/// Runs and records a load. What the first requests prepare, such as graphs, is not recorded.
pub async fn run(builder: EngineBuilder, load: Load) -> Result<Run, Error> {
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
