//! One repetition: a request that runs alone in its engine.

use std::time::Duration;

use lapwing_traces::Recording;

use lapwing_engine::Engine;
use lapwing_engine::error::Error;
use lapwing_engine::{Prompt, Request};

/// One measured repetition.
pub(super) struct Run {
    pub(super) ttft_ms: f64,
    pub(super) ids: Vec<u32>,
    pub(super) late: Duration,
    pub(super) recording: Recording,
}

/// A measured repetition, and what the engine recorded late.
pub(super) struct Measured {
    pub(super) run: Run,
    /// Events of the measured repetition before.
    pub(super) late_events: Recording,
}

/// Runs one request alone in the engine, and records it if it is measured.
pub(super) async fn one(
    engine: &Engine,
    ids: Vec<u32>,
    tokens: usize,
    measured: bool,
) -> Result<Option<Measured>, Error> {
    let mut request = Request::new(Prompt::Ids(ids)).greedy().ignore_eos().max_tokens(tokens);
    if measured {
        request = request.traced();
    }
    let late_before: Duration = engine.late().iter().sum();
    let begin = engine.recorder().clock().now();
    let mut stream = engine.generate(request).await?;
    let mut ids = Vec::new();
    while let Some(token) = stream.next().await {
        ids.push(token?.id);
    }
    let times = stream.summary().map(|summary| summary.times);
    drop(stream);
    if !measured {
        return Ok(None);
    }
    // Actors record the end of a turn after the last token is sent. When the scheduler has answered an
    // empty request, it has recorded these events; a worker may still be late.
    let nothing = Request::new(Prompt::Ids(vec![0])).greedy().max_tokens(0);
    let mut stream = engine.generate(nothing).await?;
    while stream.next().await.is_some() {}
    let mut recording = engine.recorder().take();
    let late_events = recording.split_before(begin);
    let ttft_ms = times.map_or(f64::NAN, |times| times.ttft().as_secs_f64() * 1e3);
    let late = engine.late().iter().sum::<Duration>().saturating_sub(late_before);
    Ok(Some(Measured { run: Run { ttft_ms, ids, late, recording }, late_events }))
}

/// Ids spread over the vocabulary, after the begin token if the model uses one.
pub(super) fn prompt_ids(engine: &Engine, count: usize, seed: u64) -> Vec<u32> {
    let tokenizer = engine.tokenizer();
    let vocab = tokenizer.vocab_size().max(1) as u64;
    let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
    // A Weyl sequence with its high bits mixed down: repeatable, and different in each repetition.
    let id = |at: u64| {
        let x = (seed << 32 | at).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (((x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16) % vocab) as u32
    };
    bos.into_iter().chain((0..count as u64).map(id)).take(count).collect()
}
