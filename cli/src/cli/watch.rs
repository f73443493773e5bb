//! `--watch`: shows lanes, rates and queues on the terminal while an answer is generated.

use std::io::{IsTerminal, Stderr, stderr, stdin, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapwing_engine::TokenStream;
use lapwing_engine::traces::{Recorder, Recording};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
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
mod plain;

use board::Board;
use draw::Shown;

/// Interval between two frames.
const TICK: Duration = Duration::from_millis(80);

/// Whether the terminal shows the view; also read by the panic hook, and by the end of a session.
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

/// Shows the engine's activity until a signal, Ctrl-C or `q`, or until the stream ends. If there is
/// someone to press a key, the last state stays on the screen until then.
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
    let mut has_ended = false;
    loop {
        tokio::select! {
            biased;
            _ = &mut interrupted => break,
            _ = ticks.tick() => {
                if !has_ended {
                    watched.look(&mut board);
                }
                let shown = Shown { model: &watched.model, text: &answer.text, has_ended };
                screen.draw(&board, &shown).map_err(screen_failure)?;
                let is_pressed = |key: &KeyEvent| has_ended || quits(key);
                if pressed(is_pressed).map_err(screen_failure)? {
                    break;
                }
            }
            item = stream.next(), if !has_ended => match item {
                Some(token) => answer.push(token?),
                None => {
                    answer.summary = stream.summary().cloned();
                    // A key pressed before the end does not end the view.
                    let quit = pressed(quits).map_err(screen_failure)?;
                    if quit || !stdin().is_terminal() || !stdout().is_terminal() {
                        break;
                    }
                    watched.look(&mut board);
                    has_ended = true;
                }
            },
        }
    }
    drop(screen);
    watched.look(&mut board);
    Ok(answer)
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

/// Reads the keys pressed since the last call; returns whether one of them is of this kind.
fn pressed(kind: impl Fn(&KeyEvent) -> bool) -> std::io::Result<bool> {
    let mut found = false;
    while event::poll(Duration::ZERO)? {
        let Event::Key(key) = event::read()? else { continue };
        found |= key.kind == KeyEventKind::Press && kind(&key);
    }
    Ok(found)
}

/// Whether the key ends the view during the run: `q`, or Ctrl-C, which is a key in raw mode.
fn quits(key: &KeyEvent) -> bool {
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.code == KeyCode::Char('q') || control_c
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

    fn draw(&mut self, board: &Board, shown: &Shown<'_>) -> std::io::Result<()> {
        self.terminal.draw(|frame| draw::draw(frame, board, shown))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the normal screen, once, if the view is shown.
pub(crate) fn restore() {
    if SHOWN.swap(false, Ordering::SeqCst) {
        // A closed terminal needs no restoring.
        let _ = disable_raw_mode();
        let _ = execute!(stderr(), LeaveAlternateScreen, cursor::Show);
    }
}
