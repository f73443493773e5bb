//! The memory bound of decode: every token reads all weights, and the keys and values of its context.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::cpu::Cpu;
use lapwing_kernels::cpu::roofline::BandwidthProbe;
use lapwing_traces::{Clock, OsClock};

use super::measure::{Kind, Test};
use crate::cli::EngineArgs;
use crate::cli::failure::Failure;

/// Rounds of reading before a test and after it.
const ROUNDS: usize = 9;

/// Reads as many bytes as a token does, with as many threads.
#[derive(Debug)]
pub(super) struct Reader {
    cpu: Arc<Cpu>,
    engine: EngineArgs,
    model: PathBuf,
}

/// Memory of the size that a token of a test reads.
pub(super) struct TokenReading {
    cpu: Arc<Cpu>,
    memory: Arc<BandwidthProbe>,
    bytes: usize,
}

impl Reader {
    pub(super) fn new(engine: &EngineArgs, model: &Path) -> Result<Reader, Failure> {
        let cpu = engine.cpu()?;
        let (wanted, got) = (engine.thread_count(), cpu.pool().threads());
        if got != wanted {
            return Err(Failure::failed(format!(
                "only {got} of {wanted} threads are available for reading; use -t {got}"
            )));
        }
        Ok(Reader { cpu: Arc::new(cpu), engine: engine.clone(), model: model.to_owned() })
    }

    /// For a token in the middle of a test; `None` for a prompt, which is not bound by memory.
    pub(super) async fn of(&self, test: Test) -> Result<Option<TokenReading>, Failure> {
        if test.kind == Kind::Prompt {
            return Ok(None);
        }
        let context = test.depth + test.tokens / 2;
        let builder = self.engine.builder(self.model.clone())?;
        let cpu = Arc::clone(&self.cpu);
        run_blocking(move || {
            let bytes = usize::try_from(builder.step_bytes(context)?).unwrap_or(usize::MAX);
            let memory = BandwidthProbe::new(&cpu, bytes);
            let memory = memory.map_err(|error| Failure::failed(error.to_string()))?;
            Ok(Some(TokenReading { cpu, memory: Arc::new(memory), bytes }))
        })
        .await?
    }
}

/// Runs work that would block other tasks.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::failed(format!("reading ended early: {error}")))
}

impl TokenReading {
    /// Tokens per second if reading were all the work.
    pub(super) async fn speed(&self) -> Result<f64, Failure> {
        let (cpu, memory) = (Arc::clone(&self.cpu), Arc::clone(&self.memory));
        let rate = run_blocking(move || {
            // Refused only if a core has gone since the check: any core then reads.
            let _pinned = cpu.pool().pin_caller();
            let clock = OsClock::start();
            memory.median(&cpu, ROUNDS, &|| Duration::from_nanos(clock.now().0))
        });
        Ok(rate.await? / self.bytes as f64)
    }
}
