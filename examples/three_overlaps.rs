//! Lesson: drafts, verification and a long prompt run at one instant, each on a processor of its own.
//!
//! ```text
//!  cpu    draft ▇▇ draft ▇▇ draft ▇▇ draft ▇▇ draft          a draft model guesses the next tokens of two streams
//!  gpu    verify ▇▇▇▇▇▇▇ verify ▇▇▇▇▇▇▇ verify ▇▇▇▇          the model checks them, several in one step
//!  npu    prompt ▇▇▇▇▇▇▇▇▇▇▇▇ prompt ▇▇▇▇▇▇▇▇▇▇▇▇▇▇          and reads two long prompts, in chunks
//! ```
//!
//! The model is tiny, and the devices are emulated and slow: CPU threads compute true values and then wait until the time of the stated
//! rates has passed, so that the overlap is the same on any machine. The
//! program writes the timeline as a page, and prints for which share of the time which kinds of work overlapped, and the longest
//! time between two tokens of a stream. With `each` as its argument it runs again without one overlap after the other.

use lapwing::draft::{DraftChoice, Schedule};
use lapwing::traces::Report;
use lapwing::traces::html::{PageRun, page};
use lapwing::{EngineBuilder, Requant};

#[path = "three_overlaps/load.rs"]
mod load;

use load::{DEVICES, Run, load, run, tiny};

/// How a run differs from the one with all overlaps.
struct Setting {
    name: &'static str,
    change: fn(EngineBuilder) -> EngineBuilder,
}

const SETTINGS: [Setting; 4] = [
    Setting { name: "all three", change: |builder| builder },
    Setting { name: "without drafts", change: |builder| builder.draft(DraftChoice::none()) },
    Setting {
        name: "prompts on the device of the steps",
        change: |builder| builder.strategy("gpu-only"),
    },
    Setting { name: "one chunk at a time", change: |builder| builder.permits(1) },
];

fn print(name: &str, report: &Report) {
    let requests = &report.requests;
    let [gap, ttft] =
        [&requests.gap_ms, &requests.ttft_ms].map(|it| it.max.unwrap_or_default() / 1e3);
    let (time, speed) =
        (report.makespan_ns as f64 / 1e9, requests.tokens_per_second.unwrap_or_default());
    println!(
        "{name}: {time:.1} s, {speed:.1} tokens/s, prompts read after {ttft:.1} s, longest gap {gap:.2} s"
    );
    for (kinds, share) in report.together.overlaps() {
        println!("  {:<24} {:>5.1} % of the time", kinds.name(), share * 100.0);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let each = std::env::args().nth(1).as_deref() == Some("each");
    let mut wanted = None;
    for Setting { name, change } in SETTINGS.iter().take(if each { SETTINGS.len() } else { 1 }) {
        // The model drafts for itself, with fewer bits.
        let draft = DraftChoice::own(Requant::Q4_0).on_device("cpu");
        let builder = tiny(DEVICES).strategy("layer-level").chunk_rows(32);
        let builder = change(builder.draft(draft.schedule(Schedule::Asynchronous)));
        let run = run(builder, load()).await?;
        print(name, &run.report);
        assert_eq!(
            wanted.get_or_insert_with(|| run.ids.clone()),
            &run.ids,
            "an overlap changed a token"
        );
        if *name == SETTINGS[0].name {
            let three = run.report.together.concurrent["draft+verify+prompt"];
            assert!(three > Some(0.0), "three kinds of work never overlapped");
            std::fs::create_dir_all("target")?;
            let Run { timeline, analysis, report, .. } = &run;
            let shown = PageRun { title: "three overlaps", timeline, analysis, report };
            std::fs::write("target/three_overlaps.html", page(&[shown])?)?;
            println!("  the timeline as a page: target/three_overlaps.html");
        }
    }
    Ok(())
}
