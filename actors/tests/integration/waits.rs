//! Waits of a live engine: no mode changes a result, and the timeline has every wait.

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

/// Two devices that run alternately, each for half a millisecond.
fn setup() -> Setup {
    let rate = FixedRate { per_stage: STAGE, per_row: Duration::ZERO };
    Setup { devices: 2, rates: vec![rate], ..Setup::default() }
}

fn all(mode: WaitMode) -> Waits {
    Waits { device_links: mode.into(), ..Waits::for_devices(2) }
}

/// The timeline of a run of that many tokens with these wait modes.
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

/// Runs until a worker has waited as expected, at most this often: on a busy machine a worker that is
/// preempted while it polls parks for some waits.
const ATTEMPTS: usize = 40;

#[test]
fn a_worker_waits_in_the_mode_of_its_link() {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    for mode in WaitMode::ALL {
        let polls = matches!(mode, WaitMode::Spin | WaitMode::SleepThenSpin);
        if polls && cores < 2 {
            continue;
        }
        // Predictions take some waits of each kind.
        let tokens = if polls { 24 } else { 12 };
        let of_mode = |wait: &&Wait| wait.mode == *mode && (wait.spun > 1_000) == polls;
        let waited =
            (0..ATTEMPTS).any(|_| of_devices(&run(all(*mode), tokens)).iter().any(of_mode));
        assert!(waited, "{mode:?}: no worker waited so in {ATTEMPTS} runs");
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
    // Each device waits while the other runs. A busy machine lengthens the waits, and so the predictions.
    let longest = waits.iter().map(|wait| wait.end.since(wait.start)).max().expect("waits");
    assert!(median > STAGE.mul_f64(0.9) && median <= longest, "{median:?} of at most {longest:?}");
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

/// Records whether a stage waited while its device was busy.
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

/// Whether each stage of a request of that many prompt rows and tokens was queued, on one device.
fn queued(rows: usize, tokens: usize) -> Vec<bool> {
    let queued = Arc::new(Queued::default());
    let live = held_to(&Setup::default(), &(Arc::clone(&queued) as Arc<dyn TimeModel>));
    let ids = (0..).map(|seed| prompt(seed, rows)).find(|p| foretell(p, tokens).0.len() == tokens);
    let ids = ids.expect("a prompt whose answer is that long");
    let request = request(&ids, tokens);
    let mut events = live.submit(live.admit().expect("room"), request).expect("alive");
    while let StreamEvent::Token(_) = events.next_blocking() {}
    live.shutdown(Shutdown::Now);
    let queued = queued.0.lock().expect("no panic");
    queued.clone()
}

#[test]
fn a_decode_step_is_not_queued_because_its_device_was_idle() {
    let queued = queued(10, 12);
    assert!(queued.len() >= 12 && queued.iter().all(|queued| !queued), "{queued:?}");
}

#[test]
fn a_chunk_that_waits_for_the_chunk_before_it_is_queued() {
    // Two of seven chunks are in flight at a time.
    let queued = queued(100, 1);
    assert!(queued.len() >= 7 && !queued[0], "{queued:?}");
    assert!(queued.iter().filter(|queued| **queued).count() >= 3, "{queued:?}");
}

#[test]
fn one_link_waits_in_another_mode_than_the_others() {
    let mut waits = all(WaitMode::Callback);
    waits.exceptions.push((1, WaitMode::Blocking.into()));
    let timeline = run(waits, 12);
    let of = |name: &str| -> Vec<WaitMode> {
        let of_lane = |w: &&&Wait| timeline.lanes[w.lane].name == name;
        of_devices(&timeline).iter().filter(of_lane).map(|wait| wait.mode).collect()
    };
    for (name, mode) in [("oracle-0", WaitMode::Callback), ("oracle-1", WaitMode::Blocking)] {
        let modes = of(name);
        assert!(modes.len() >= 4, "{name} waits while the other runs: {modes:?}");
        assert!(modes.iter().all(|found| *found == mode), "{name}: {modes:?}");
    }
}
