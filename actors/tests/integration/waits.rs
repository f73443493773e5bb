//! Waits of a live engine: no mode changes a result, and each wait is on the timeline.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapwing_actors::drive::wait::Waits;
use lapwing_actors::message::{Shutdown, StreamEvent};
use lapwing_plan::time::{FixedRate, Job, TimeModel};
use lapwing_traces::event::WaitMode;
use lapwing_traces::html::{self, PageRun};
use lapwing_traces::timeline::Wait;
use lapwing_traces::{Analysis, Report, Scope, Timeline};

use crate::support::{Setup, foretell, held_to, prompt, recorder, request, throttled};

const STAGE: Duration = Duration::from_micros(500);

/// Two devices that take turns, each for half a millisecond.
fn setup() -> Setup {
    let rate = FixedRate { per_stage: STAGE, per_row: Duration::ZERO };
    Setup { devices: 2, rates: vec![rate], ..Setup::default() }
}

fn all(mode: WaitMode) -> Waits {
    Waits { device_links: mode, ..Waits::for_devices(2) }
}

/// The timeline of a run of so many tokens that waits like that.
fn run(waits: Waits, tokens: usize) -> Timeline {
    let recorder = recorder();
    recorder.set_scope(Scope::All);
    let (live, _) = throttled(&setup(), &recorder, waits);
    let ids = (0..).map(|seed| prompt(seed, 20)).find(|p| foretell(p, tokens).0.len() == tokens);
    let ids = ids.expect("a prompt whose answer is that long");
    let mut events =
        live.submit(live.admit().expect("room"), request(&ids, tokens)).expect("a running engine");
    let mut ids_out = Vec::new();
    loop {
        match events.next_blocking() {
            StreamEvent::Token(token) => ids_out.push(token.id),
            StreamEvent::Finished(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ids_out, foretell(&ids, tokens).0);
    live.shutdown(Shutdown::Now);
    Timeline::new(&recorder.recording())
}

fn of_devices(timeline: &Timeline) -> Vec<&Wait> {
    let of_device = |w: &&Wait| timeline.lanes[w.lane].name.starts_with("oracle");
    timeline.waits.iter().filter(of_device).collect()
}

#[test]
fn no_mode_changes_a_token_or_hides_a_wait() {
    for mode in WaitMode::ALL {
        let timeline = run(all(*mode), 12);
        let waits = of_devices(&timeline);
        assert!(waits.len() >= 8, "{mode:?}: {} waits of two devices that take turns", waits.len());
        let expected = |wait: &&Wait| [*mode, WaitMode::Callback].contains(&wait.mode);
        assert!(waits.iter().all(expected), "{mode:?}: {waits:?}");
        let scheduler = timeline.waits.len() - waits.len();
        assert!(scheduler > 0, "{mode:?}: the scheduler never waits");
    }
}

#[test]
fn a_wait_is_on_the_timeline_with_its_prediction_and_what_it_was_for() {
    let timeline = run(all(WaitMode::SleepThenSpin), 60);
    let waits = of_devices(&timeline);
    let predicted: Vec<_> = waits.iter().filter(|wait| wait.predicted > 0).collect();
    assert!(predicted.len() > 20, "{} of {} waits predicted", predicted.len(), waits.len());
    let aimed = waits.iter().filter(|wait| wait.target.is_some()).count();
    assert!(aimed > 20, "{aimed} of {} waits know what they were for", waits.len());
    let mut foretold: Vec<u64> = predicted.iter().map(|wait| wait.predicted).collect();
    foretold.sort_unstable();
    let median = Duration::from_nanos(foretold[foretold.len() / 2]);
    // Each waits while the other runs. A busy machine only makes it longer.
    assert!(median > STAGE.mul_f64(0.9) && median < STAGE * 20, "{median:?}");
}

#[test]
fn the_report_and_the_page_show_how_good_the_predictions_were() {
    let timeline = run(all(WaitMode::SleepThenSpin), 60);
    let analysis = Analysis::new(&timeline);
    let report = Report::new(&timeline, &analysis);
    let known: Vec<_> = report.waits.iter().filter(|wait| wait.error_ns.is_some()).collect();
    assert!(!known.is_empty(), "{:?}", report.waits);
    assert!(known.iter().any(|wait| wait.late_ns.p50.is_some() && wait.calibration.len() > 1));
    let side =
        PageRun { title: "waits", timeline: &timeline, analysis: &analysis, report: &report };
    let page = html::page(&[side]).expect("a page");
    assert!(
        page.contains("Histogram of the prediction error (actual minus predicted time)"),
        "the page does not draw the errors"
    );
}

/// Notes whether a stage waited while its device was busy.
#[derive(Default)]
struct Queued(Mutex<Vec<bool>>);

impl TimeModel for Queued {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.0.lock().expect("no panic").push(job.queued);
        Duration::ZERO
    }

    fn node_time(&self, _: &Job<'_>, _: usize) -> Duration {
        Duration::from_micros(100)
    }
}

#[test]
fn a_step_that_a_worker_brings_upon_itself_counts_as_one_that_waited() {
    let queued = Arc::new(Queued::default());
    let live = held_to(&Setup::default(), &(Arc::clone(&queued) as Arc<dyn TimeModel>));
    let ids = (0..).map(|seed| prompt(seed, 10)).find(|p| foretell(p, 12).0.len() == 12);
    let ids = ids.expect("a prompt whose answer is that long");
    let mut events = live.submit(live.admit().expect("room"), request(&ids, 12)).expect("alive");
    while let StreamEvent::Token(_) = events.next_blocking() {}
    live.shutdown(Shutdown::Now);
    let queued = queued.0.lock().expect("no panic");
    assert!(queued.len() >= 12 && queued.iter().all(|queued| !queued), "{queued:?}");
}

#[test]
fn one_link_waits_in_another_mode_than_the_others() {
    let mut waits = all(WaitMode::Callback);
    waits.exceptions.push((1, WaitMode::Blocking));
    let timeline = run(waits, 12);
    for wait in of_devices(&timeline) {
        let other = timeline.lanes[wait.lane].name == "oracle-1";
        let mode = if other { WaitMode::Blocking } else { WaitMode::Callback };
        assert_eq!(wait.mode, mode, "{wait:?}");
    }
}
