//! Scoring a text gives one log-probability per token, whatever the chunks.

use lapwing_actors::message::{FinishReason, Task};
use lapwing_traces::Nanos;

use crate::support::{Setup, VOCAB, World, generate, next_token, prompt};

/// The oracle's logits: one of 10, all others 0.
fn expected(ids: &[u32], from: usize) -> Vec<f32> {
    let norm = (10f32.exp() + (VOCAB - 1) as f32).ln();
    (from..ids.len())
        .map(|at| if next_token(&ids[..at]) == ids[at] { 10.0 - norm } else { -norm })
        .collect()
}

#[test]
fn scores_do_not_depend_on_chunks_start_or_neighbours() {
    for chunk_rows in [1, 3, 16, 64] {
        for from in [0, 1, 2, 17, 39, 40, 90] {
            let mut ids = prompt(5, 30);
            for _ in 0..10 {
                ids.push(next_token(&ids));
            }
            let mut world = World::new(&Setup { chunk_rows, ..Setup::default() });
            let other = prompt(6, 25);
            let _other = world.submit(Nanos(0), &other, generate(&other, 12));
            let mut stream = world.submit(Nanos(0), &ids, Task::Score { from, top: 2 });
            world.sim.run();
            stream.drain();
            let wanted = expected(&ids, from.clamp(1, ids.len()));
            assert_eq!(stream.scores.len(), wanted.len(), "from {from}, chunks of {chunk_rows}");
            let positions = from.clamp(1, ids.len())..;
            for ((found, wanted), at) in stream.scores.iter().zip(wanted).zip(positions) {
                assert!((found.logprob - wanted).abs() < 1e-5, "{found:?} for {wanted}");
                let best = next_token(&ids[..at]);
                assert_eq!((found.id, found.top.len(), found.top[0].id), (ids[at], 2, best));
            }
            assert_eq!(stream.end, Some(Ok(FinishReason::Scored)));
            world.assert_empty();
        }
    }
}
