//! Trees of a draft model's tokens, of both schedules: an accepted branch replaces the likeliest path wherever that
//! is computed, in the draft model and in passes ahead.

use lapwing_actors::draft::{DraftStats, Drafts, Schedule};
use lapwing_kernels::device::ModelId;
use lapwing_traces::Nanos;

use crate::drafts_by_model::{placements, play, submit};
use crate::oracle::foretell;
use crate::support::prompt;
use crate::two_models::{Engine, Setup};

fn of_model(schedule: Schedule) -> Drafts {
    Drafts::of_model(ModelId(1), schedule)
}

/// Generates a text of 64 tokens with drafts; returns what they did, and the time. A draft model that is wrong has the right token in the second
/// place.
fn run(setup: &Setup, drafts: Drafts, what: &str) -> (DraftStats, u64) {
    let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 64).0.len() == 64);
    let mut engine = Engine::new(setup);
    let request = submit(&mut engine, Nanos(0), ids.expect("a long text"), 64, Some(drafts));
    let mut requests = [request];
    play(&mut engine, &mut requests, what);
    requests[0].check(what);
    (requests[0].stats().clone(), engine.sim.now().0)
}

#[test]
fn an_alternative_of_a_draft_model_is_accepted_in_place_of_a_wrong_token() {
    for (name, strategies) in placements() {
        for schedule in Schedule::ALL {
            let what = format!("{name}, {}", schedule.name());
            let of_width = |width| {
                // The draft model is fast, so that many tokens are there when the target has a result.
                let strategies = strategies.clone();
                let rates = [(20, 2), (90, 3), (5, 1)];
                let setup = Setup { wrong: Some(3), strategies, rates, ..Setup::default() };
                run(&setup, of_model(schedule).always(8).width(width), &what)
            };
            let [(chain, _), (tree, _)] = [1, 2].map(of_width);
            assert_eq!((chain.tree_steps, chain.branch_steps), (0, 0), "{what}");
            let taken = tree.branch_steps;
            assert!(taken > 3 && taken <= tree.tree_steps, "{what}: {tree:?}");
            assert!(tree.steps < chain.steps, "{what}: {tree:?}, {chain:?}");
            // With the target on one device there are no passes ahead.
            if schedule == Schedule::Synchronous || name == "a device each" {
                assert_eq!(tree.wasted, tree.drafted - tree.accepted, "{what}: {tree:?}");
            }
        }
    }
}

/// A pass ahead goes on after the likeliest path of a tree. It is kept if that path is
/// accepted, and stale if a branch is.
#[test]
fn passes_ahead_of_a_tree_go_on_after_its_longest_path() {
    let [.., (_, strategies)] = placements();
    let of = |permits| {
        let strategies = strategies.clone();
        let rates = [(90, 1), (90, 1), (15, 1)];
        let setup = Setup { wrong: Some(4), strategies, rates, permits, ..Setup::default() };
        run(&setup, of_model(Schedule::Asynchronous).always(6).width(2), "passes ahead of trees")
    };
    let (stats, time) = of(4);
    assert!(stats.branch_steps > 1 && stats.branch_steps < stats.tree_steps, "{stats:?}");
    let rejected = stats.drafted - stats.accepted;
    assert!(stats.wasted > rejected, "no pass ahead was sent beside a branch: {stats:?}");
    // With two chunks in flight, one of each model, there is none for a pass ahead.
    let (_, alone) = of(2);
    assert!(time < alone, "{time} ns with passes ahead, {alone} ns without");
}

/// A pass ahead that finds no page is shortened. The branches of the pass in flight stay: one of them may be accepted.
#[test]
fn a_lack_of_pages_for_a_pass_ahead_leaves_the_tree_in_flight_alone() {
    let [.., (_, strategies)] = placements();
    for (pages, wrong) in (21..34).flat_map(|pages| (2..6).map(move |wrong| (pages, wrong))) {
        let strategies = strategies.clone();
        let (rates, pages) = ([(90, 1), (90, 1), (15, 1)], [pages, 64]);
        let setup = Setup { wrong: Some(wrong), strategies, rates, pages, ..Setup::default() };
        let drafts = of_model(Schedule::Asynchronous).always(6).width(3);
        run(&setup, drafts, &format!("{} pages, one of {wrong} wrong", setup.pages[0]));
    }
}
