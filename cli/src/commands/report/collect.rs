//! Collects what a report says.

use std::path::Path;

use lapwing_engine::Engine;
use lapwing_engine::devices::DeviceSpec;
use lapwing_engine::plan::DeviceKind;
use lapwing_engine::profile::Profile;
use serde::Deserialize;

use super::Args;
use super::content::{
    DeviceCheck, Measured, Model, Report, Strategies, StrategyRun, Trust, VERSION,
};
use super::machine::Machine;
use super::steps::Steps;
use crate::cli::DeviceArgs;
use crate::cli::failure::Failure;
use crate::cli::session::Session;
use crate::commands::devices::Drivers;

/// What every device continues.
const PROMPT: &str = "The quick brown fox jumps over the lazy dog, and";
/// Tokens that each device generates after it.
const TOKENS: &str = "16";
/// Tokens that are generated after the prompt of each strategy.
const STRATEGY_TOKENS: usize = 4;
/// The strategy that computes on the CPU alone.
const ON_CPU: &str = "cpu-only";
/// The strategy with which a device that computes only matmuls computes all of them.
const MATMULS: &str = "layer-level";

/// Collects everything. Only what the CPU needs must not fail.
///
/// # Errors
/// When the model cannot be read, a device has a wrong form, or the CPU cannot run the model.
pub(super) async fn report(
    args: &Args,
    model: &Path,
    steps: &Steps<'_>,
    session: &Session,
) -> Result<Report, Failure> {
    let machine = Machine::here(&Engine::builder().model(model))?;
    let drivers = tokio::task::spawn_blocking(Drivers::found).await;
    let drivers = drivers.map_err(|error| Failure::failed(format!("no drivers: {error}")))?;
    let specs = specs(args, &drivers, session)?;
    let cpu = DeviceSpec::cpu();
    let reference = check(steps, &cpu, &cpu, None).await;
    let Some(ids) = reference.ids.clone() else {
        let why = reference.failed.unwrap_or_default();
        return Err(Failure::failed(format!("the CPU cannot run the model: {why}")));
    };
    let mut devices = vec![reference];
    for spec in specs.iter().filter(|spec| **spec != cpu) {
        devices.push(check(steps, spec, &cpu, Some(&ids[..])).await);
    }
    let works = |spec: &&DeviceSpec| {
        let text = spec.to_string();
        devices.iter().any(|device| device.spec == text && device.failed.is_none())
    };
    let mut working: Vec<&DeviceSpec> = specs.iter().filter(works).collect();
    if !working.iter().any(|spec| spec.kind == DeviceKind::Cpu) {
        working.insert(0, &cpu);
    }
    let working: Vec<String> = working.into_iter().map(ToString::to_string).collect();
    let folder = tempfile::tempdir();
    let folder =
        folder.map_err(|error| Failure::failed(format!("no temporary folder: {error}")))?;
    let file = folder.path().join("profile.json").display().to_string();
    let measured = profile(steps, &working, &file).await;
    let (profile, trust, profile_failed) = match measured {
        Ok((profile, trust)) => (Some(profile), Some(trust), None),
        Err(why) => (None, None, Some(why)),
    };
    let file = profile.as_ref().map(|_| &*file);
    let compared = strategies(steps, args.prompt_tokens, working, file).await;
    let (strategies, strategies_failed) = match compared {
        Ok(strategies) => (Some(strategies), None),
        Err(why) => (None, Some(why)),
    };
    Ok(Report {
        lapwing_report: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        machine,
        drivers,
        model: Model {
            file: model.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes: std::fs::metadata(model).map_or(0, |data| data.len()),
        },
        devices,
        profile,
        trust,
        profile_failed,
        strategies,
        strategies_failed,
        seconds: steps.taken().as_secs_f64(),
    })
}

/// The devices of the options, or the CPU and the real processors of this machine.
fn specs(args: &Args, drivers: &Drivers, session: &Session) -> Result<Vec<DeviceSpec>, Failure> {
    let found = || std::iter::once("cpu".to_owned()).chain(drivers.processors()).collect();
    let devices = if args.device.is_empty() { found() } else { args.device.clone() };
    let devices = DeviceArgs::of(devices);
    devices.note(session)?;
    devices.specs()
}

/// What is needed of the output of `lapwing run`.
#[derive(Deserialize)]
struct Ran {
    ids: Vec<u32>,
    timings: Timings,
}

#[derive(Deserialize)]
struct Timings {
    prefill_tokens_per_second: Option<f64>,
    decode_tokens_per_second: Option<f64>,
}

/// Has a device continue the prompt, beside the CPU if it computes only some ops.
async fn check(
    steps: &Steps<'_>,
    spec: &DeviceSpec,
    cpu: &DeviceSpec,
    expected: Option<&[u32]>,
) -> DeviceCheck {
    let (text, cpu) = (spec.to_string(), cpu.to_string());
    let beside = spec.is_static().then_some(&*cpu);
    let mut args =
        vec!["--raw", "--temp", "0", "--no-prefix-cache", "-n", TOKENS, "--device", &text];
    if let Some(cpu) = beside {
        args.extend(["--device", cpu, "--strategy", MATMULS, "--wait-for-graphs"]);
    }
    args.push(PROMPT);
    // The others, the profile and the strategies shall have their part of the time.
    let share = if expected.is_none() { 1.0 } else { 0.4 };
    let what = format!("{}: the ids of a prompt", spec.name);
    let ran: Result<Ran, String> = steps.run(&what, share, "run", &args).await;
    let (ran, failed) = match ran {
        Ok(ran) => (Some(ran), None),
        Err(why) => (None, Some(why)),
    };
    let (ids, timings) = ran.map(|ran| (ran.ids, ran.timings)).unzip();
    let expected = expected.or(ids.as_deref());
    let first_difference = ids.as_ref().zip(expected).and_then(|both| difference(both.0, both.1));
    DeviceCheck {
        device: spec.name.clone(),
        emulated: spec.is_emulated(),
        beside: beside.map(str::to_owned),
        equal: ids.as_ref().map(|_| first_difference.is_none()),
        first_difference,
        prefill_tokens_per_second: timings.as_ref().and_then(|of| of.prefill_tokens_per_second),
        decode_tokens_per_second: timings.as_ref().and_then(|of| of.decode_tokens_per_second),
        ids,
        spec: text,
        failed,
    }
}

/// Position of the first id that differs.
fn difference(ids: &[u32], expected: &[u32]) -> Option<usize> {
    let differs = ids.iter().zip(expected).position(|both| both.0 != both.1);
    differs.or((ids.len() != expected.len()).then(|| ids.len().min(expected.len())))
}

/// The names of devices as in `--device`.
pub(super) fn names(devices: &[String]) -> String {
    let names = devices.iter().map(|device| device.split('=').next().unwrap_or(device));
    names.collect::<Vec<_>>().join(" + ")
}

/// `--device` with each of these devices.
fn device_options(devices: &[String]) -> Vec<&str> {
    devices.iter().flat_map(|device| ["--device", &**device]).collect()
}

/// Measures the devices.
async fn profile(
    steps: &Steps<'_>,
    devices: &[String],
    file: &str,
) -> Result<(Profile, Trust), String> {
    let each = (steps.left().as_secs_f64() / 2.0 / devices.len().max(1) as f64).floor().max(1.0);
    let seconds = each.to_string();
    let mut args = device_options(devices);
    args.extend(["--seconds", &seconds, "-r", "3", "-o", file]);
    let what = format!("a profile of {}", names(devices));
    let trust: Trust = steps.run(&what, 0.8, "profile", &args).await?;
    let profile = Profile::load(Path::new(file)).map_err(|error| error.to_string())?;
    Ok((profile, trust))
}

/// What is needed of the output of `lapwing plan --explain`.
#[derive(Deserialize)]
struct Planned {
    source: String,
    candidates: Vec<Candidate>,
    winner: String,
}

#[derive(Deserialize)]
struct Candidate {
    strategy: String,
    predicted_ms: Option<f64>,
    why_not: Option<String>,
}

/// What is needed of the output of `lapwing bench --quick`.
#[derive(Deserialize)]
struct Benched {
    lengths: Vec<Length>,
}

#[derive(Deserialize)]
struct Length {
    strategies: Vec<Measured>,
    absent: Vec<Absent>,
}

#[derive(Deserialize)]
struct Absent {
    reason: String,
}

/// Predicts the time of each strategy, and measures those that are possible, as far as there is time.
async fn strategies(
    steps: &Steps<'_>,
    prompt_tokens: usize,
    devices: Vec<String>,
    profile: Option<&str>,
) -> Result<Strategies, String> {
    let length = prompt_tokens.to_string();
    let mut args = device_options(&devices);
    args.extend(["-p", &length]);
    args.extend(profile.into_iter().flat_map(|file| ["--profile", file]));
    let explain = [&args[..], &["--explain"]].concat();
    let planned: Planned = steps.run("predicted times", 1.0, "plan", &explain).await?;
    let Planned { source, mut candidates, winner } = planned;
    // All others are compared with it, so that it is measured first.
    candidates.sort_by_key(|candidate| candidate.strategy != ON_CPU);
    let mut runs: Vec<StrategyRun> = Vec::new();
    let mut expected = None;
    for Candidate { strategy, predicted_ms, why_not } in candidates {
        let measured = match why_not {
            Some(why) => Err(steps.private.cleaned(&why)),
            None => measured(steps, &strategy, &args).await,
        };
        let (measured, failed) = match measured {
            Ok(measured) => (Some(measured), None),
            Err(why) => (None, Some(why)),
        };
        let ids = measured.as_ref().map(|measured| measured.ids.clone());
        if strategy == ON_CPU {
            expected.clone_from(&ids);
        }
        let equal = ids.zip(expected.as_ref()).map(|both| both.0 == *both.1);
        runs.push(StrategyRun { strategy, predicted_ms, measured, equal, failed });
    }
    let time = |run: &StrategyRun| run.predicted_ms.unwrap_or(f64::INFINITY);
    runs.sort_by(|a, b| time(a).total_cmp(&time(b)));
    Ok(Strategies {
        devices,
        prompt_tokens,
        generated_tokens: STRATEGY_TOKENS,
        source,
        chosen: winner,
        runs,
    })
}

/// Measures a strategy once.
async fn measured(steps: &Steps<'_>, strategy: &str, args: &[&str]) -> Result<Measured, String> {
    let tokens = STRATEGY_TOKENS.to_string();
    let args = [args, &["--quick", "-n", &tokens, "--strategy", strategy]].concat();
    let what = format!("strategy {strategy}");
    let benched: Benched = steps.run(&what, 1.0, "bench", &args).await?;
    let length = benched.lengths.into_iter().next();
    let Length { strategies, absent } = length.ok_or("it was not measured")?;
    let reason = absent.into_iter().next().map(|absent| steps.private.cleaned(&absent.reason));
    strategies.into_iter().next().ok_or_else(|| reason.unwrap_or_default())
}
