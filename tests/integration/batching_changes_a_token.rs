//! Chunk size, threads, other requests and the driver never change a token.

use std::sync::Arc;
use std::time::Duration;

use lapwing::{Engine, Prompt, Request};
use lapwing_plan::strategy::CpuOnly;
use lapwing_plan::time::FixedRate;

use crate::cases::{all, cases};
use crate::simulated::{Simulated, tokens_of};
use crate::support::{SMOLLM2, builder, collect_ids, ids, needs, reference};

const TOKENS: usize = 16;

/// Eight prompts of mixed length; quickly, of those the four shorter ones and the longest.
fn prompts() -> Vec<Vec<u32>> {
    let reference = reference("greedy/smollm2.json");
    let mut prompts: Vec<_> = reference["prompts"]
        .as_array()
        .expect("prompts")
        .iter()
        .map(|p| ids(&p["prompt_ids"]))
        .collect();
    prompts.sort_by_key(Vec::len);
    let step = (prompts.len() - 1) / 7;
    let eight = (0..8).map(|i| prompts[i * step].clone());
    eight.enumerate().filter(|(i, _)| all() || *i < 4 || *i == 7).map(|(_, p)| p).collect()
}

fn request(ids: &[u32]) -> Request {
    Request::new(Prompt::Ids(ids.to_vec())).greedy().max_tokens(TOKENS)
}

async fn one_by_one(engine: &Engine, prompts: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for ids in prompts {
        all.push(collect_ids(engine.generate(request(ids)).await.expect("a stream")).await);
    }
    all
}

async fn together(engine: &Engine, prompts: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut streams = Vec::new();
    for ids in prompts {
        streams.push(engine.generate(request(ids)).await.expect("a stream"));
    }
    let mut all = Vec::new();
    for stream in streams {
        all.push(collect_ids(stream).await);
    }
    all
}

#[tokio::test]
async fn chunks_threads_and_neighbours_never_change_a_token() {
    needs!(SMOLLM2);
    let prompts = prompts();
    let whole = builder(SMOLLM2).chunk_rows(8192).build().await.expect("an engine");
    let wanted = one_by_one(&whole, &prompts).await;
    assert_eq!(together(&whole, &prompts).await, wanted, "all at once");
    let chunks = cases(&[7][..], &[1, 7, 32, 64, 512]);
    for (at, &chunk) in chunks.iter().enumerate() {
        // One and two threads by turns; the kernels' tests of tiny models have every number of threads with every chunk.
        let threads = cases(2, 1 + at % 2);
        let engine = builder(SMOLLM2).threads(threads).chunk_rows(chunk);
        let engine = engine.build().await.expect("an engine");
        let found = together(&engine, &prompts).await;
        assert_eq!(found, wanted, "{threads} threads, chunks of {chunk}, all at once");
        // The longest prompt alone; the others differ only in length.
        let alone = one_by_one(&engine, &prompts[prompts.len() - 1..]).await;
        assert_eq!(alone.first(), wanted.last(), "{threads} threads, chunks of {chunk}, alone");
    }
    assert_eq!(simulated(&prompts, 64), wanted, "in virtual time");
}

/// The same state machines in virtual time, computing true values.
fn simulated(prompts: &[Vec<u32>], chunk_rows: usize) -> Vec<Vec<u32>> {
    let rate =
        FixedRate { per_stage: Duration::from_micros(50), per_row: Duration::from_micros(5) };
    let strategy = Arc::new(CpuOnly);
    let mut simulation =
        Simulated { devices: &["cpu"], strategy, rate, chunk_rows, pages: 128 }.start();
    tokens_of(&mut simulation, prompts, TOKENS, &[2, 0])
}
