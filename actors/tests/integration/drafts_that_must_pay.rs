//! Requests that draft by a predictor only where that pays: which do, and that the others cost nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lapwing_actors::draft::{Drafts, Schedule};
use lapwing_kernels::device::ModelId;
use lapwing_plan::strategy::{CpuOnly, GpuOnly};

use crate::drafts_by_model::{Request, play, submit};
use crate::oracle::{Fault, PAGE_ROWS, foretell};
use crate::support::prompt;
use crate::two_models::{Engine, Setup};

/// An engine whose predictor is right or never right, and the number of runs of the predictor so far.
struct Subject {
    engine: Engine,
    runs: Arc<AtomicU64>,
}

/// What a request did.
struct Asked {
    /// Why it did not draft, or not to its end.
    stopped: Option<String>,
    /// Runs of the predictor.
    runs: u64,
    /// Nanoseconds.
    time: u64,
}

impl Subject {
    fn new(is_right: bool, change: impl FnOnce(&mut Setup)) -> Subject {
        let runs = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&runs);
        let counted: Fault = Arc::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            None
        });
        let mut setup = Setup {
            given: true,
            wrong: if is_right { None } else { Some(1) },
            pages: [200; 2],
            strategies: [Arc::new(GpuOnly), Arc::new(CpuOnly)],
            ..Setup::default()
        };
        setup.faults[1] = counted;
        change(&mut setup);
        Subject { engine: Engine::new(&setup), runs }
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Asks for tokens, after everything else.
    fn ask(&mut self, ids: &[u32], tokens: usize, drafts: Option<Drafts>) -> Asked {
        let (runs, now) = (self.runs(), self.engine.sim.now());
        let has_drafts = drafts.is_some();
        let mut request = [submit(&mut self.engine, now, ids.to_vec(), tokens, drafts)];
        play(&mut self.engine, &mut request, "one request");
        request[0].check("one request");
        let stopped = has_drafts.then(|| request[0].stats().stopped.clone()).flatten();
        let time = self.engine.sim.now().0 - now.0;
        Asked { stopped, runs: self.runs() - runs, time }
    }
}

fn drafts() -> Option<Drafts> {
    Some(Drafts::of_predictor(ModelId(1), Schedule::Synchronous).if_they_pay())
}

/// Prompts of that length after which the text goes on for `tokens` tokens.
fn prompts(length: usize, tokens: usize) -> impl Iterator<Item = Vec<u32>> {
    let all = (0..).map(move |seed| prompt(seed, length));
    all.filter(move |ids| foretell(ids, tokens).0.len() == tokens)
}

#[test]
fn a_predictor_that_is_right_drafts_for_every_request_that_is_long_enough() {
    let mut subject = Subject::new(true, |_| {});
    for (number, ids) in prompts(20, 40).take(20).enumerate() {
        let asked = subject.ask(&ids, 40, drafts());
        assert!(asked.stopped.is_none() && asked.runs > 0, "{number}: {:?}", asked.stopped);
        let plain = subject.ask(&ids, 40, None);
        assert!(asked.time < plain.time, "{number}: {} and {} ns", asked.time, plain.time);
    }
}

#[test]
fn prompts_of_short_answers_do_not_go_through_the_predictor() {
    let mut subject = Subject::new(true, |_| {});
    for (number, ids) in prompts(60, 2).take(20).enumerate() {
        let asked = subject.ask(&ids, 2, drafts());
        assert_eq!(asked.runs, 0, "{number}");
        let why = asked.stopped.expect("a reason");
        assert!(why.contains("too short"), "{number}: {why}");
        assert_eq!(asked.time, subject.ask(&ids, 2, None).time, "{number}");
    }
}

#[test]
fn prompts_go_ever_more_rarely_through_a_predictor_that_is_never_right() {
    let mut subject = Subject::new(false, |_| {});
    let mut drafting = Vec::new();
    for (number, ids) in prompts(20, 40).take(80).enumerate() {
        let asked = subject.ask(&ids, 40, drafts());
        match asked.stopped {
            None => drafting.push(number),
            Some(why) => {
                assert_eq!(asked.runs, 0, "{number}");
                assert!(why.contains("rejected"), "{number}: {why}");
                let plain = subject.ask(&ids, 40, None);
                assert_eq!(asked.time, plain.time, "{number}: it costs nothing");
            }
        }
    }
    assert_eq!(drafting, [0, 9, 18, 35, 68]);
}

#[test]
fn requests_that_come_at_once_wait_for_one_that_shows_what_drafts_gain() {
    let mut subject = Subject::new(true, |_| {});
    let now = subject.engine.sim.now();
    let send = |ids| submit(&mut subject.engine, now, ids, 40, drafts());
    let mut requests: Vec<Request> = prompts(20, 40).take(5).map(send).collect();
    play(&mut subject.engine, &mut requests, "at once");
    let reasons: Vec<_> = requests.iter().map(|it| it.stats().stopped.clone()).collect();
    assert!(reasons[0].is_none(), "{reasons:?}");
    for why in &reasons[1..] {
        assert!(why.as_ref().is_some_and(|why| why.contains("not known")), "{why:?}");
    }
    requests.iter().for_each(|request| request.check("at once"));
    let later = prompts(20, 40).nth(9).expect("a prompt");
    assert_eq!(subject.ask(&later, 40, drafts()).stopped, None);
}

#[test]
fn what_the_prefix_cache_has_costs_nothing() {
    // All of this prompt is too much for so few tokens, and its end is not.
    let ids = prompts(15 * PAGE_ROWS, 12).next().expect("a prompt");
    let mut subject = Subject::new(true, |setup| setup.prefixes = true);
    let first = subject.ask(&ids, 12, drafts());
    assert!(first.stopped.is_some_and(|why| why.contains("too short")));
    let again = subject.ask(&ids, 12, drafts());
    assert_eq!(again.stopped, None);
    assert!(again.runs > 0);
}

#[test]
fn preempted_requests_keep_what_was_decided() {
    // Room for two of four texts at a time.
    let mut subject = Subject::new(true, |setup| setup.pages = [34, 200]);
    let one = prompts(20, 40).nth(7).expect("a prompt");
    // Then it is known what drafts gain.
    subject.ask(&one, 40, drafts());
    let now = subject.engine.sim.now();
    let send = |ids| submit(&mut subject.engine, now, ids, 40, drafts());
    let mut requests: Vec<Request> = prompts(20, 40).take(4).map(send).collect();
    play(&mut subject.engine, &mut requests, "little memory");
    assert!(subject.engine.sim.scheduler().stats().all.preempted > 0);
    for request in &requests {
        request.check("little memory");
        assert_eq!(request.stats().stopped, None);
    }
}
