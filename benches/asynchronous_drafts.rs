//! A target and a draft model on two throttled devices: asynchronous drafts beside synchronous ones, measured and
//! simulated.
//!
//! ```text
//! cargo bench -p lapwing --bench asynchronous_drafts -- FILE.gguf [DRAFTER] [RATIOS] [PAIRS] [TOKENS]
//! ```
//!
//! The target's device has a fixed bandwidth. That of the draft model's device follows from RATIOS: times of a draft
//! pass as shares of the target's pass. Each text is generated with both schedules in turn, in alternating order.
//! Beside the medians of its tokens per second are those of the simulator, with the pass times that the throttled
//! devices state, and with the share of drafted tokens that the same runs accepted. `late` is the time by which this
//! machine exceeded the stated times; the comparison is meaningful only where that is small.
//!
//! Fails if a ratio or a speed differs by more than [`ERROR_MAX`] from the simulated one.

use std::time::Duration;

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, DraftExplanation, DraftStats, Schedule};
use lapwing::simulate::speculation::{Acceptance, Pass, Speculation};
use lapwing::{Engine, Request};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Maximum of |simulated − measured| / measured.
const ERROR_MAX: f64 = 0.10;
/// Bandwidth of the target's device in GB/s. At this rate one thread computes true values in time.
const TARGET_GBPS: f64 = 0.5;
/// Simulated texts, which differ in the positions of rejected tokens.
const SEEDS: u64 = 40;
/// A text whose drafts are accepted often, and one of which many are rejected.
const TEXTS: [(&str, &str); 2] = [
    ("code", "Write a Python class for a stack with push, pop and peek."),
    ("prose", "Describe a walk through an old harbour town at dawn."),
];

/// Runs of one schedule.
struct Subject {
    schedule: Schedule,
    engine: Engine,
    speeds: Vec<f64>,
    stats: DraftStats,
}

impl Subject {
    fn new(schedule: Schedule, engine: Engine) -> Subject {
        Subject { schedule, engine, speeds: Vec::new(), stats: DraftStats::default() }
    }
}

/// What the devices state: the time of a target's pass, of a draft model's, and the growth of both with each row.
#[derive(Clone, Copy, Debug)]
struct Times {
    target: Duration,
    draft: Duration,
    growth: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("give a model: cargo bench -p lapwing --bench asynchronous_drafts -- FILE.gguf");
        return Ok(());
    };
    let drafter = args.next().unwrap_or_else(|| "self:q4_0".to_owned());
    let ratios = args.next().unwrap_or_else(|| "0.1,0.3,0.6".to_owned());
    let ratios = ratios.split(',').map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
    let pairs: usize = args.next().map_or(Ok(3), |pairs| pairs.parse())?;
    let tokens: usize = args.next().map_or(Ok(64), |tokens| tokens.parse())?;
    println!(
        "| text | draft / target pass | accepted | sync, tok/s | simulated | error | async, tok/s | simulated | error | \
         async / sync | simulated | error | late |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for ratio in ratios {
        // The first engine shows what a pass of the draft model takes at the target's bandwidth.
        let draft: DraftChoice = drafter.parse()?;
        let same = engine(&model, &draft, TARGET_GBPS).await?;
        let Times { target, draft: slow, .. } = times(&same)?;
        let gbps = TARGET_GBPS * slow.as_secs_f64() / (ratio * target.as_secs_f64());
        drop(same);
        let [sync, own] = [Schedule::Synchronous, Schedule::Asynchronous];
        let mut subjects = [
            Subject::new(sync, engine(&model, &draft.clone().schedule(sync), gbps).await?),
            Subject::new(own, engine(&model, &draft.clone().schedule(own), gbps).await?),
        ];
        for (name, text) in TEXTS {
            missed.extend(compare(name, text, &mut subjects, pairs, tokens).await?);
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n").into()) }
}

async fn engine(model: &str, draft: &DraftChoice, gbps: f64) -> Result<Engine> {
    let device =
        |name: &str, gbps: f64| format!("{name}=throttled:gflops=300,gbps={gbps},threads=1");
    let devices = format!("{}+{}", device("gpu", TARGET_GBPS), device("cpu", gbps));
    let builder = Engine::builder().model(model).devices(DeviceSpec::list(&devices)?);
    let builder = builder.strategy("gpu-only").context(256);
    Ok(builder.draft(draft.clone().on_device("cpu")).build().await?)
}

/// The times of passes in the middle of a text.
fn times(engine: &Engine) -> Result<Times> {
    let explained = engine.explain_drafts(64)?.ok_or("a drafter")?;
    let DraftExplanation { draft, verify, .. } = explained;
    let (Some(one), Some(most)) = (verify.first(), verify.last()) else {
        return Err("the devices state no times".into());
    };
    let growth = (most.as_secs_f64() / one.as_secs_f64() - 1.0) / (verify.len() - 1) as f64;
    Ok(Times { target: *one, draft, growth })
}

/// Generates a text with both schedules, prints the row, and returns what differs too much.
async fn compare(
    name: &str,
    text: &str,
    subjects: &mut [Subject; 2],
    pairs: usize,
    tokens: usize,
) -> Result<Vec<String>> {
    for subject in &mut *subjects {
        (subject.speeds, subject.stats) = (Vec::new(), DraftStats::default());
    }
    let late = |subjects: &[Subject; 2]| -> Duration {
        subjects.iter().flat_map(|subject| subject.engine.late()).sum()
    };
    let (late_before, mut prompt, mut answer) = (late(subjects), 0, None);
    let mut time = Duration::ZERO;
    for pair in 0..pairs {
        for at in 0..subjects.len() {
            let subject = &mut subjects[(at + pair) % 2];
            let request = Request::ask(text).greedy().ignore_eos().max_tokens(tokens);
            let mut stream = subject.engine.generate(request).await?;
            let mut ids = Vec::new();
            while let Some(token) = stream.next().await {
                ids.push(token?.id);
            }
            let summary = stream.summary().ok_or("a summary")?;
            prompt = summary.times.prompt_tokens;
            time += summary.times.decode();
            subject.speeds.push((tokens - 1) as f64 / summary.times.decode().as_secs_f64());
            subject.stats.add(&summary.drafts.clone().unwrap_or_default());
            if *answer.get_or_insert_with(|| ids.clone()) != ids {
                return Err(format!("{name}: the schedules generate different tokens").into());
            }
        }
    }
    let times = times(&subjects[0].engine)?;
    let late = (late(subjects) - late_before).as_secs_f64() / time.as_secs_f64();
    let simulated: Vec<f64> = subjects
        .iter()
        .map(|subject| simulate(subject, times, prompt, tokens))
        .collect::<Result<_>>()?;
    let measured: Vec<f64> = subjects.iter().map(|subject| median(&subject.speeds)).collect();
    let gains: Vec<f64> =
        subjects[0].speeds.iter().zip(&subjects[1].speeds).map(|(sync, own)| own / sync).collect();
    let rows = [
        ("sync", measured[0], simulated[0]),
        ("async", measured[1], simulated[1]),
        ("async / sync", median(&gains), simulated[1] / simulated[0]),
    ];
    let share = times.draft.as_secs_f64() / times.target.as_secs_f64();
    let accepted = subjects.each_ref().map(|subject| 100.0 * rate(&subject.stats));
    print!("| {name} | {share:.2} | {:.0}, {:.0} % |", accepted[0], accepted[1]);
    let mut missed = Vec::new();
    for (what, measured, simulated) in rows {
        let error = simulated / measured - 1.0;
        print!(" {measured:.2} | {simulated:.2} | {:+.1} % |", 100.0 * error);
        if error.abs() > ERROR_MAX {
            missed.push(format!("{name}, {share:.2}, {what}: {:+.1} %", 100.0 * error));
        }
    }
    println!(" {:.1} % |", 100.0 * late);
    Ok(missed)
}

/// Tokens per second of the same text in virtual time: the mean time of texts with that acceptance.
fn simulate(subject: &Subject, times: Times, prompt: usize, tokens: usize) -> Result<f64> {
    let pass = |one| Pass { one, growth: times.growth, bandwidth: 0.0 };
    let rate = rate(&subject.stats);
    let mut sum = 0.0;
    for seed in 0..SEEDS {
        let run = Speculation {
            acceptance: Acceptance::Independent { rate, seed },
            schedule: subject.schedule,
            prompt,
            tokens,
            ..Speculation::new(pass(times.target), pass(times.draft))
        };
        sum += run.run()?.time.0 as f64 * 1e-9;
    }
    Ok((tokens - 1) as f64 * SEEDS as f64 / sum)
}

/// The probability that the next token of a draft is right; 0 without drafts.
fn rate(stats: &DraftStats) -> f64 {
    stats.next_acceptance().unwrap_or_default()
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
