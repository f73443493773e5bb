//! The rows of a token tree: with the bits of a sequence without branches.

use super::*;
use lapwing_model::device::Fork;

/// Rows of a text, of which the last ones are the first piece of a tree.
const ROWS: usize = 40;
/// Row before the first branch, of the text. The second one leaves the first after one token.
const AFTER: usize = 35;
const FIRST: [u32; 3] = [9, 4, 11];
const SECOND: [u32; 2] = [7, 8];

fn text() -> Vec<u32> {
    (0..ROWS).map(|at| 3 + (at as u32 * 7919) % 250).collect()
}

fn work(case: &Case, batch: Batch) -> Work {
    let mut work = case.work(0..1, MemoryDomain::Host);
    work.payload = Arc::new(Payload { batch, values: TensorSet::default() });
    work
}

/// The logits of the last row of a text.
fn linear(case: &Case, ids: &[u32]) -> Vec<f32> {
    let mut batch = Batch::default();
    batch.push(ids, 0, [2, 0], ids.len() - 1..ids.len());
    case.run(&mut case.queue(), work(case, batch)).expect("a run")
}

/// The rows from `start` on, and two branches.
fn branched(start: usize) -> Batch {
    let mut batch = Batch::default();
    batch.push(&text()[start..], start, [2, 0], 0..ROWS - start);
    let after = AFTER - start;
    let (at, of_first) = (AFTER + 1, ROWS - start);
    let fork = Fork { after, copy: Some((0, 1)) };
    batch.push_branch(&FIRST, at, [2, 1].into(), fork);
    let fork = Fork { after: of_first, copy: Some((1, 3)) };
    batch.push_branch(&SECOND, at + 1, [2, 3].into(), fork);
    batch
}

#[test]
fn the_rows_of_a_tree_have_the_logits_of_their_paths() {
    needs_driver!();
    for model in MODELS.into_iter().take(cases(2, 4)) {
        let case = case_of(model);
        let (text, trunk) = (text(), &text()[..=AFTER]);
        let paths = [&text[..], &[trunk, &FIRST].concat(), &[trunk, &FIRST[..1], &SECOND].concat()];
        let expected = paths.map(|path| linear(&case, path));
        for start in [0, 34] {
            let mut device = case.queue();
            if start > 0 {
                let mut batch = Batch::default();
                batch.push(&text[..start], 0, [2, 0], 0..1);
                case.run(&mut device, work(&case, batch)).expect("a run");
            }
            let batch = branched(start);
            let ends: Vec<usize> = batch.spans.iter().map(|span| span.rows.end - 1).collect();
            let logits = case.run(&mut device, work(&case, batch)).expect("a run");
            let width = expected[0].len();
            for (end, expected) in ends.into_iter().zip(&expected) {
                let found = &logits[end * width..(end + 1) * width];
                assert!(found == &expected[..], "{model}, from row {start} on, row {end}");
            }
        }
    }
}

#[test]
fn a_sequence_goes_on_with_the_pages_of_a_branch() {
    needs_driver!();
    let case = case();
    let mut device = case.queue();
    case.run(&mut device, work(&case, branched(0))).expect("a run");
    let mut batch = Batch::default();
    batch.push(&[77], AFTER + 4, [2, 1], 0..1);
    let found = case.run(&mut device, work(&case, batch)).expect("a run");
    let path = [&text()[..=AFTER], &FIRST, &[77]].concat();
    assert!(found == linear(&case, &path));
}
