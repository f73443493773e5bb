//! An embedding gets the hidden states of its rows, each once and in order, whatever the chunks, the
//! neighbours and the devices, and gives everything back.

use std::sync::atomic::Ordering;

use lapwing_actors::RunError;
use lapwing_actors::message::{FinishReason, SchedulerMessage, Task};
use lapwing_traces::Nanos;

use crate::oracle::{WIDTH, hidden};
use crate::support::{Setup, World, foretell, generate, prompt};

#[test]
fn hidden_states_do_not_depend_on_chunks_neighbours_or_devices() {
    for (chunk_rows, devices) in [(1, 1), (3, 2), (16, 3), (64, 1)] {
        for rows in [0..1, 0..40, 17..18, 39..40, 12..90] {
            let setup = Setup { chunk_rows, devices, ..Setup::default() };
            let mut world = World::new(&setup);
            let (ids, other) = (prompt(5, 40), prompt(6, 25));
            let mut neighbour = world.submit(Nanos(0), &other, generate(&other, 12));
            let mut scored = world.submit(Nanos(0), &other, Task::Score { from: 1, top: 0 });
            let mut stream = world.submit(Nanos(0), &ids, Task::Embed { rows: rows.clone() });
            world.sim.run();
            for stream in [&mut stream, &mut neighbour, &mut scored] {
                stream.drain();
            }
            let what = format!("rows {rows:?} in chunks of {chunk_rows} on {devices}");
            let wanted = rows.start..rows.end.min(ids.len());
            assert_eq!(stream.hidden, hidden(&ids, wanted, setup.layers), "{what}");
            assert_eq!(stream.end, Some(Ok(FinishReason::Embedded)), "{what}");
            assert_eq!(neighbour.tokens, foretell(&other, 12).0, "{what}");
            assert_eq!((scored.scores.len(), scored.hidden.len()), (other.len() - 1, 0), "{what}");
            world.assert_empty();
        }
    }
}

#[test]
fn rows_after_the_last_wanted_one_are_not_computed() {
    let mut world = World::new(&Setup::default());
    let mut stream = world.submit(Nanos(0), &prompt(5, 40), Task::Embed { rows: 0..1 });
    world.sim.run();
    stream.drain();
    assert_eq!(stream.hidden.len(), WIDTH);
    assert_eq!(world.rows_run[0].load(Ordering::Relaxed), 1);
}

#[test]
fn a_dropped_stream_frees_its_pages() {
    for steps in [1, 2, 3, 5, 9, 12] {
        let mut world = World::new(&Setup { chunk_rows: 4, ..Setup::default() });
        let ids = prompt(3, 40);
        let mut stream = world.submit(Nanos(0), &ids, Task::Embed { rows: 0..40 });
        for _ in 0..steps {
            world.sim.step();
        }
        stream.receiver = None;
        world.sim.send_at(world.sim.now(), SchedulerMessage::Wake);
        world.sim.run();
        world.assert_empty();
    }
}

#[test]
fn an_empty_or_too_long_text_is_refused() {
    let mut world = World::new(&Setup::default());
    let cases = [
        (prompt(1, 0), Err(RunError::EmptyPrompt)),
        (prompt(1, 256), Ok(FinishReason::Embedded)),
        (prompt(1, 257), Err(RunError::PromptTooLong { tokens: 257, context: 256 })),
    ];
    for (ids, end) in cases {
        let mut stream = world.submit(Nanos(0), &ids, Task::Embed { rows: 0..ids.len() });
        world.sim.run();
        stream.drain();
        assert_eq!(stream.end, Some(end), "{} tokens", ids.len());
        world.assert_empty();
    }
}
