//! `--watch`: lanes, rates and queues on the terminal while an answer is generated.

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

use super::answer::{Answer, Unanswered};
use super::failure::Failure;
use super::interrupts::Claim;

mod board;
mod draw;

use board::Board;

/// Time between two pictures.
const TICK: Duration = Duration::from_millis(80);

/// Whether the terminal shows the view; a panic looks here, too.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Refuses where there is nothing to draw on.
pub(crate) fn check() -> Result<(), Failure> {
    if stderr().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "--watch draws on stderr, which is no terminal here; --trace FILE.lwt records without one",
    ))
}

/// What a view shows beside the recording.
pub(crate) struct Watched<'a> {
    /// Name of the model.
    pub(crate) model: String,
    /// What is watched.
    pub(crate) recorder: &'a Recorder,
    /// Where the recording is kept as a whole; none if nobody wants it.
    pub(crate) whole: Option<&'a mut Recording>,
}

/// Takes a stream to its end, to Ctrl-C or to `q`, and shows meanwhile what the engine does.
pub(crate) async fn watch(
    mut stream: TokenStream,
    mut watched: Watched<'_>,
    claim: &Claim<'_>,
) -> Result<Answer, Unanswered> {
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

/// Ready when the process is told to end: the terminal is given back first, as after Ctrl-C.
#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};

    match signal(SignalKind::terminate()) {
        Ok(mut told) => drop(told.recv().await),
        // Then it ends the process at once, as it does without a view.
        Err(_) => std::future::pending().await,
    }
}

/// Such a signal there is not.
#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

impl Watched<'_> {
    /// Takes what was recorded since the last look.
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
        .hint("without --watch nothing is drawn; --trace FILE.lwt records the run")
}

/// Whether a key was pressed that ends the view.
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

/// The terminal's other screen; the usual one comes back when it is dropped.
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
        // Nobody will drop it.
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

/// Gives the usual screen back, once.
fn restore() {
    if SHOWN.swap(false, Ordering::SeqCst) {
        // On a terminal that is gone there is nothing to give back.
        let _ = disable_raw_mode();
        let _ = execute!(stderr(), LeaveAlternateScreen, cursor::Show);
    }
}
