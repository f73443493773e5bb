//! The answer of a stream, and the recording of how it was made.

use lapwing_engine::traces::{Recorder, Recording};
use lapwing_engine::{Engine, Shutdown, TokenStream};

use super::Args;
use crate::cli::answer::{Answer, follow};
use crate::cli::failure::Failure;
use crate::cli::output::{AnswerOutput, print_plain};
use crate::cli::session::Session;
use crate::cli::signals::Signal;
use crate::cli::watch::{Watched, watch};

/// Follows the stream to its end, and saves the recording. A signal ends the process after the
/// recording is saved.
pub(super) async fn answer(
    args: &Args,
    stream: TokenStream,
    engine: &Engine,
    session: &Session,
) -> Result<Answer, Failure> {
    let output = AnswerOutput::new(args.sampling.has_grammar());
    if !args.watch && args.trace.trace.is_none() {
        let answer = follow(stream, output, session, None).await?;
        engine.shutdown(Shutdown::Drain).await?;
        return Ok(answer);
    }
    let recorder = engine.recorder();
    let claim = session.interrupts.claim();
    let mut watched = Recording::default();
    let answer = if args.watch {
        let model = engine.model_path().file_stem().unwrap_or_default();
        let model = model.to_string_lossy().into_owned();
        let whole = args.trace.trace.is_some().then_some(&mut watched);
        watch(stream, Watched { model, recorder, whole }, &claim).await
    } else {
        follow(stream, output, session, Some(&claim)).await
    };
    // `q` in the view is a Ctrl-C.
    let is_interrupted = answer.as_ref().is_ok_and(Answer::is_interrupted);
    let signal = claim.received().or(is_interrupted.then_some(Signal::Interrupt));
    drop(claim);
    if signal.is_some() {
        session.restore_after_interrupt();
    }
    // The actors' last events belong to the recording; after an error they may show its cause.
    engine.shutdown(Shutdown::Drain).await?;
    let saved = args.trace.save(|| settled(recorder, watched), session);
    let answer = answer?;
    saved?;
    if let Some(signal) = signal {
        if args.watch && !session.json {
            // The view has shown nothing of it outside its own screen.
            print_plain(&format!("{}\n", answer.text))?;
        }
        return Err(Failure::Interrupted(signal));
    }
    Ok(answer)
}

/// The whole recording: the events taken by a view, and those that came later.
fn settled(recorder: &Recorder, mut taken: Recording) -> Recording {
    let rest = recorder.recording();
    taken.events.extend_from_slice(&rest.events);
    Recording { events: taken.events, ..rest }
}
