//! Native CPUs as throttled ones, with the rates of a short measurement.

use std::time::Duration;

use lapwing_engine::devices::{DeviceSpec, Pace, Rates};
use lapwing_engine::traces::{Clock, OsClock};
use lapwing_kernels::cpu::roofline::{Roofline, RooflineError};
use lapwing_kernels::cpu::{Cpu, Isa};
use lapwing_lab::simulate::{Machine, NumberKind};

use crate::cli::failure::Failure;
use crate::cli::session::Session;

/// Measurements of each limit; the fastest counts.
const ROUNDS: usize = 5;
/// Keys of the measured numbers.
const MEASURED: [&str; 2] = ["gflops", "gbps"];

/// The devices, and for each one that was replaced its position and the source of its rates.
type Replaced = (Vec<DeviceSpec>, Vec<(usize, String)>);

/// Replaces native CPUs by throttled ones at the roofline of their threads: a lower bound of every op's
/// time.
pub(super) async fn replaced(
    specs: Vec<DeviceSpec>,
    session: &Session,
) -> Result<Replaced, Failure> {
    let mut replaced = Vec::new();
    let mut sources = Vec::new();
    for (at, spec) in specs.into_iter().enumerate() {
        if spec.pace != Pace::Native {
            replaced.push(spec);
            continue;
        }
        session.note("measuring the peak rates of the CPU");
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = spec.threads.unwrap_or_else(all);
        let roof = tokio::task::spawn_blocking(move || measure(threads)).await;
        let roof = roof.map_err(|error| Failure::failed(format!("the measurement ended: {error}")));
        let roof = roof?.map_err(|error| Failure::failed(error.to_string()))?;
        let (peak, what) = match (roof.int8, roof.f32) {
            (Some(peak), _) => (peak, "int8"),
            (None, Some(peak)) => (peak, "f32"),
            (None, None) => {
                return Err(Failure::failed(format!(
                    "the peak rate of '{}' cannot be measured with {}; measure a profile with \
                     `lapwing profile`, and give it with --profile",
                    spec.name,
                    roof.isa.name()
                )));
            }
        };
        let (gflops, gbps) = (peak.ops_per_second / 1e9, roof.read_bytes_per_second / 1e9);
        let mut throttled = DeviceSpec::throttled(&spec.name, spec.kind);
        throttled.threads = Some(threads);
        throttled.pace = Pace::Throttled(Rates { gflops, gbps, ..Rates::CPU });
        let s = if threads == 1 { "" } else { "s" };
        let limits = format!("{what} peak, reads from memory");
        sources.push((at, format!("roofline of {threads} thread{s}: {limits}")));
        replaced.push(throttled);
    }
    Ok((replaced, sources))
}

fn measure(threads: usize) -> Result<Roofline, RooflineError> {
    let clock = OsClock::start();
    let now = || Duration::from_nanos(clock.now().0);
    Roofline::measure(&Cpu::new(threads, Isa::best()), ROUNDS, &now)
}

/// States the sources of the measured rates in the machine's numbers.
pub(super) fn describe(machine: &mut Machine, sources: &[(usize, String)]) {
    for (at, source) in sources {
        for (key, number) in &mut machine.device[*at].numbers {
            let measured = MEASURED.contains(&key.as_str());
            (number.kind, number.source) = match measured {
                true => (NumberKind::Pinned, source.clone()),
                false => (NumberKind::Assumed, "a default: a roofline does not say it".to_owned()),
            };
        }
    }
}
