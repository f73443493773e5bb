//! Reads messages of a chat: from a line editor on a terminal, otherwise from the lines of stdin.

use std::path::PathBuf;
use std::sync::Arc;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::cli::failure::Failure;
use crate::cli::session::Session;
use crate::cli::terminal::TypingModes;

/// Begins and ends a message of several lines.
const QUOTES: &str = "\"\"\"";

/// A user action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A message or a command.
    Text(String),
    /// A message between quotes, possibly of several lines.
    Message(String),
    /// Ctrl-C while typing.
    Dropped,
    /// End of input.
    End,
}

/// Reads lines, one at a time.
pub(super) enum Lines {
    /// On a terminal.
    Editor(Box<Editor>),
    /// From a pipe or file.
    Stdin,
}

/// The line editor and its history.
pub(super) struct Editor {
    editor: DefaultEditor,
    history: Option<PathBuf>,
    typing: Arc<TypingModes>,
}

/// What is read next.
#[derive(Clone, Copy)]
enum Part {
    /// The first line of a message.
    First,
    /// A line that continues it.
    Later,
}

/// A line as it was typed.
enum Typed {
    Line(String),
    Dropped,
    End,
}

impl Lines {
    /// A line editor with the history of earlier chats.
    pub(super) fn editor(history: Option<PathBuf>, session: &Session) -> Result<Lines, Failure> {
        let mut editor = DefaultEditor::new().map_err(terminal_failure)?;
        // Prompts are shown in colour only if there is a helper.
        editor.set_helper(Some(()));
        if let Some(path) = &history
            && path.exists()
            && let Err(error) = editor.load_history(path)
        {
            session.note(&format!("note: cannot use the history {}: {error}", path.display()));
        }
        let typing = Arc::clone(&session.typing);
        Ok(Lines::Editor(Box::new(Editor { editor, history, typing })))
    }

    /// Reads every line of stdin as a message.
    pub(super) fn stdin() -> Lines {
        Lines::Stdin
    }

    /// The next line, read on the blocking pool.
    pub(super) async fn next(mut self) -> Result<(Line, Lines), Failure> {
        let read = tokio::task::spawn_blocking(move || {
            let line = match &mut self {
                Lines::Editor(editor) => editor.next(),
                Lines::Stdin => joined(&mut |_| next_of_stdin(), false),
            };
            line.map(|line| (line, self))
        });
        read.await.unwrap_or_else(|error| Err(Failure::failed(format!("cannot read: {error}"))))
    }
}

/// Joins the lines of a message: those between quotes, and, if `continues`, those that end in a
/// backslash.
fn joined(
    read: &mut dyn FnMut(Part) -> Result<Typed, Failure>,
    continues: bool,
) -> Result<Line, Failure> {
    let mut line = match read(Part::First)? {
        Typed::Line(line) => line,
        Typed::Dropped => return Ok(Line::Dropped),
        Typed::End => return Ok(Line::End),
    };
    if let Some(first) = line.trim_start().strip_prefix(QUOTES) {
        return quoted(first.to_owned(), read);
    }
    while let Some(start) = line.strip_suffix('\\').filter(|_| continues) {
        let start = start.to_owned();
        match read(Part::Later)? {
            Typed::Line(next) => line = format!("{start}\n{next}"),
            Typed::Dropped => return Ok(Line::Dropped),
            Typed::End => return Ok(Line::End),
        }
    }
    Ok(Line::Text(line))
}

/// Reads the rest of a message whose quotes are open.
fn quoted(
    first: String,
    read: &mut dyn FnMut(Part) -> Result<Typed, Failure>,
) -> Result<Line, Failure> {
    let mut text = first;
    loop {
        if let Some(whole) = text.trim_end().strip_suffix(QUOTES) {
            let whole = whole.strip_prefix('\n').unwrap_or(whole);
            return Ok(Line::Message(whole.strip_suffix('\n').unwrap_or(whole).to_owned()));
        }
        match read(Part::Later)? {
            Typed::Line(next) => text.extend(["\n", &next]),
            Typed::Dropped => return Ok(Line::Dropped),
            Typed::End => {
                return Err(Failure::failed("the input ends within a message in \"\"\"")
                    .hint("end the message with \"\"\""));
            }
        }
    }
}

impl Editor {
    fn next(&mut self) -> Result<Line, Failure> {
        let line = joined(&mut |part| self.typed(part), true)?;
        match &line {
            Line::Text(text) => self.remember(text)?,
            Line::Message(text) => self.remember(&format!("{QUOTES}{text}{QUOTES}"))?,
            Line::Dropped | Line::End => {}
        }
        Ok(line)
    }

    fn typed(&mut self, part: Part) -> Result<Typed, Failure> {
        let (prompt, style) = match part {
            Part::First => ("> ", AnsiColor::Cyan.on_default().bold()),
            Part::Later => (". ", AnsiColor::Cyan.on_default()),
        };
        // Never on a stdout that is no terminal, and with NO_COLOR.
        let is_plain = AutoStream::choice(&std::io::stdout()) == ColorChoice::Never;
        let style = if is_plain { Style::new() } else { style };
        let styled = format!("{style}{prompt}{style:#}");
        self.typing.begin();
        let read = self.editor.readline(&(prompt, styled));
        self.typing.end();
        match read {
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Typed::Dropped),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(terminal_failure(error)),
        }
    }

    /// Saves the line at once, so that a killed chat loses nothing.
    fn remember(&mut self, line: &str) -> Result<(), Failure> {
        let Some(path) = &self.history else { return Ok(()) };
        if line.trim().is_empty()
            || !self.editor.add_history_entry(line).map_err(terminal_failure)?
        {
            return Ok(());
        }
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder.map_err(|error| Failure::file("create the folder of", path, &error))?;
        let kept = if path.exists() {
            self.editor.append_history(path)
        } else {
            self.editor.save_history(path)
        };
        kept.map_err(|error| {
            Failure::failed(format!("cannot write the history {}: {error}", path.display()))
                .hint("use --history FILE for another file, or --no-history")
        })
    }
}

fn next_of_stdin() -> Result<Typed, Failure> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) => Ok(Typed::End),
        Ok(_) => Ok(Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned())),
        Err(error) => Err(Failure::failed(format!("cannot read stdin: {error}"))),
    }
}

fn terminal_failure(error: ReadlineError) -> Failure {
    Failure::failed(format!("cannot read from the terminal: {error}"))
        .hint("messages can also be piped into stdin, one per line")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines of a text.
    fn lines(text: &str, continues: bool) -> Vec<Line> {
        let mut source = text.lines().map(str::to_owned);
        let mut read = |_| Ok(source.next().map_or(Typed::End, Typed::Line));
        let next = || match joined(&mut read, continues).expect("lines") {
            Line::End => None,
            line => Some(line),
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn lines_are_joined_by_quotes_and_backslashes() {
        let text = |text: &str| Line::Text(text.to_owned());
        let message = |text: &str| Line::Message(text.to_owned());
        let rows = [
            ("a\nb", true, vec![text("a"), text("b")]),
            ("a\\\nb\\\nc\nd", true, vec![text("a\nb\nc"), text("d")]),
            ("a\\\nb", false, vec![text("a\\"), text("b")]),
            ("\"\"\"one\"\"\"\nb", false, vec![message("one"), text("b")]),
            ("\"\"\"\n/help\n\nb\\\n\"\"\"\nc", true, vec![message("/help\n\nb\\"), text("c")]),
            ("  \"\"\"a\n b\"\"\"  ", false, vec![message("a\n b")]),
            ("\"\"\"\"\"\"", false, vec![message("")]),
            ("say \"\"\"\nb", false, vec![text("say \"\"\""), text("b")]),
        ];
        for (input, continues, expected) in rows {
            assert_eq!(lines(input, continues), expected, "{input:?}");
        }
    }

    #[test]
    fn an_open_message_is_not_sent() {
        let mut source = ["\"\"\"", "half"].into_iter();
        let mut read =
            |_| Ok(source.next().map_or(Typed::End, |line| Typed::Line(line.to_owned())));
        assert!(matches!(joined(&mut read, false), Err(Failure::Failed { .. })));
    }
}
