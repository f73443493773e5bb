//! `lapwing inspect --fit`: whether a model runs here and how fast, from its header alone.

mod report;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapwing_engine::fit::{Fit, FitOptions, ModelHeader};
use lapwing_engine::{EngineBuilder, Error};

use self::report::FitReport;
use super::Args;
use crate::cli::background::until_signal;
use crate::cli::failure::Failure;
use crate::cli::opening::Given;
use crate::cli::output::{print, print_json};
use crate::cli::profiles::with_profile;
use crate::cli::resolve::{ModelChoice, existing};
use crate::cli::session::Session;
use crate::cli::{DeviceArgs, EngineArgs};
use crate::commands::devices::Drivers;

/// Prints what the model needs here.
pub(super) async fn run(args: &Args, model: &str, session: &Session) -> Result<(), Failure> {
    let report = match header(model).await? {
        Err(unsupported) => FitReport::unsupported(model, None, &unsupported),
        Ok(header) => match header.supported() {
            Err(error) if error.is_unsupported() => {
                FitReport::unsupported(model, Some(&header), &error)
            }
            Err(error) => return Err(error.into()),
            Ok(_) => fitted(args, Arc::new(header), session).await?,
        },
    };
    if session.json { print_json(&report) } else { print(&text::of(&report)) }
}

/// The header of a model; the inner error says that the model is not supported.
async fn header(model: &str) -> Result<Result<ModelHeader, Error>, Failure> {
    let header = match ModelChoice::of(model)? {
        ModelChoice::File(path) => ModelHeader::open(&existing(path)?),
        ModelChoice::Name(name) => ModelHeader::of_name(&name).await,
    };
    match header {
        Err(error) if !error.is_unsupported() => Err(error.into()),
        header => Ok(header),
    }
}

/// The report on a supported model, for each of the sets of devices.
async fn fitted(
    args: &Args,
    header: Arc<ModelHeader>,
    session: &Session,
) -> Result<FitReport, Failure> {
    let mut found: Vec<(String, Result<Fit, String>)> = Vec::new();
    let sets = sets(&args.engine).await?;
    let is_one = sets.len() == 1;
    for devices in sets {
        let engine = EngineArgs { devices, ..args.engine.clone() };
        let name = match engine.devices.device.is_empty() {
            true => "cpu".to_owned(),
            false => engine.devices.device.join("+"),
        };
        match fit(args, engine, &header, session).await {
            Ok(fit) => found.push((name, Ok(fit))),
            // One of several sets does not hide the others.
            Err(Failure::Failed { message, .. }) if !is_one => found.push((name, Err(message))),
            Err(failure) => return Err(failure),
        }
    }
    Ok(FitReport::new(&header, args.engine.kv, found))
}

/// The devices that were chosen, or else each processor of this machine, an NPU beside the CPU.
async fn sets(engine: &EngineArgs) -> Result<Vec<DeviceArgs>, Failure> {
    if !engine.devices.device.is_empty() {
        return Ok(vec![engine.devices.clone()]);
    }
    let drivers = tokio::task::spawn_blocking(Drivers::found).await;
    let drivers = drivers.map_err(|error| {
        Failure::failed(format!("listing the devices of this machine ended early: {error}"))
    })?;
    let beside = drivers.processors().into_iter().map(|device| match device.starts_with("npu") {
        true => format!("cpu+{device}"),
        false => device,
    });
    let all = std::iter::once("cpu".to_owned()).chain(beside);
    Ok(all.map(|device| engine.devices.with(device)).collect())
}

async fn fit(
    args: &Args,
    engine: EngineArgs,
    header: &Arc<ModelHeader>,
    session: &Session,
) -> Result<Fit, Failure> {
    let path: Option<&Path> = header.path.as_deref();
    let builder = engine.builder(path.map(PathBuf::from).unwrap_or_default())?;
    let builder = builder.given(args.ctx, EngineBuilder::context);
    // A profile belongs to a file.
    let builder = if path.is_some() { with_profile(builder, session) } else { builder };
    let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len}, {eta} left");
    if bar.is_none() {
        session.note(
            "measuring a few ops of the model's shapes, and all of them in a row, for some seconds",
        );
    }
    let header = Arc::clone(header);
    until_signal("measurement", bar, session, move |step| {
        builder.fit_here(&header, &FitOptions::default(), &mut |at| {
            step(at.done, at.of, format_args!("{}: {}", at.device, at.what))
        })
    })
    .await
}
