//! `--watch`: shows lanes, rates and queues on the terminal while an answer is generated.

use std::io::{IsTerminal, Stderr, stderr};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapwing::TokenStream;
use lapwing::traces::{Recorder, Recording};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use tokio::time::MissedTickBehavior;

use super::answer::{Answer, AnswerError};
use super::failure::Failure;
use super::interrupts::Claim;

mod board;
mod draw;

use board::Board;

/// Interval between two frames.
const TICK: Duration = Duration::from_millis(80);

/// Whether the terminal shows the view; also read by the panic hook.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Refuses if stderr is not a terminal.
pub(crate) fn check() -> Result<(), Failure> {
    if stderr().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "--watch needs a terminal on stderr; use --trace FILE.lwt to record without one",
    ))
}

/// Data that a view shows besides the recording.
pub(crate) struct Watched<'a> {
    /// Name of the model.
    pub(crate) model: String,
    /// The watched run.
    pub(crate) recorder: &'a Recorder,
    /// The whole recording, if it is to be saved.
    pub(crate) whole: Option<&'a mut Recording>,
}

/// Shows the engine's activity until the stream ends, or until Ctrl-C or `q`.
pub(crate) async fn watch(
    mut stream: TokenStream,
    mut watched: Watched<'_>,
    claim: &Claim<'_>,
) -> Result<Answer, AnswerError> {
    let mut screen = Screen::open().map_err(screen_failure)?;
    let mut board = Board::default();
    let mut answer = Answer::default();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut interrupted = std::pin::pin!(claim.interrupted());
    let mut terminated = std::pin::pin!(terminated());
    loop {
        tokio::select! {
            biased;
            () = &mut interrupted => break,
            () = &mut terminated => break,
            _ = ticks.tick() => {
                watched.look(&mut board);
                screen.draw(&board, &watched.model, &answer.text).map_err(screen_failure)?;
                if quits().map_err(screen_failure)? {
                    break;
                }
            }
            item = stream.next() => match item {
                Some(token) => answer.push(token?),
                None => {
                    answer.summary = stream.summary().cloned();
                    break;
                }
            },
        }
    }
    drop(screen);
    watched.look(&mut board);
    Ok(answer)
}

/// Completes when the process is asked to terminate, so that the terminal is restored first.
#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};

    match signal(SignalKind::terminate()) {
        Ok(mut told) => drop(told.recv().await),
        // Without a handler, the signal ends the process at once.
        Err(_) => std::future::pending().await,
    }
}

/// Other systems have no such signal.
#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

impl Watched<'_> {
    /// Takes the events recorded since the last call.
    fn look(&mut self, board: &mut Board) {
        let fresh = self.recorder.take();
        board.add(&fresh, self.recorder.clock().now());
        if let Some(whole) = &mut self.whole {
            let mut events = std::mem::take(&mut whole.events);
            events.extend_from_slice(&fresh.events);
            **whole = Recording { events, ..fresh };
        }
    }
}

fn screen_failure(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot draw on the terminal: {error}"))
        .hint("run without --watch; --trace FILE.lwt records the run")
}

/// Whether a key that ends the view was pressed.
fn quits() -> std::io::Result<bool> {
    while event::poll(Duration::ZERO)? {
        let Event::Key(key) = event::read()? else { continue };
        let control_c =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if key.kind == KeyEventKind::Press && (key.code == KeyCode::Char('q') || control_c) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The terminal's alternate screen; dropping it restores the normal one.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    fn open() -> std::io::Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                report(panic);
            }));
        });
        enable_raw_mode()?;
        SHOWN.store(true, Ordering::SeqCst);
        let opened = execute!(stderr(), EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stderr())));
        // After a panic, drop does not run.
        opened.map(|terminal| Screen { terminal }).inspect_err(|_| restore())
    }

    fn draw(&mut self, board: &Board, model: &str, text: &str) -> std::io::Result<()> {
        self.terminal.draw(|frame| draw::draw(frame, board, model, text))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the normal screen, once.
fn restore() {
    if SHOWN.swap(false, Ordering::SeqCst) {
        // A closed terminal needs no restoring.
        let _ = disable_raw_mode();
        let _ = execute!(stderr(), LeaveAlternateScreen, cursor::Show);
    }
}
