//! Reads messages of a chat: from a line editor on a terminal, otherwise from the lines of stdin.

use std::path::PathBuf;

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::cli::failure::Failure;
use crate::cli::session::Session;

/// A user action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A message, possibly of several lines.
    Text(String),
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
}

impl Lines {
    /// A line editor with the history of earlier chats.
    pub(super) fn editor(history: Option<PathBuf>, session: &Session) -> Result<Lines, Failure> {
        let mut editor = DefaultEditor::new().map_err(terminal_failure)?;
        if let Some(path) = &history
            && path.exists()
            && let Err(error) = editor.load_history(path)
        {
            session.note(&format!("note: cannot use the history {}: {error}", path.display()));
        }
        Ok(Lines::Editor(Box::new(Editor { editor, history })))
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
                Lines::Stdin => next_of_stdin(),
            };
            line.map(|line| (line, self))
        });
        read.await.unwrap_or_else(|error| Err(Failure::failed(format!("cannot read: {error}"))))
    }
}

impl Editor {
    fn next(&mut self) -> Result<Line, Failure> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { "> " } else { ". " };
            match self.editor.readline(prompt) {
                Ok(line) => match line.strip_suffix('\\') {
                    Some(start) => text.extend([start, "\n"]),
                    None => {
                        text.push_str(&line);
                        self.remember(&text)?;
                        return Ok(Line::Text(text));
                    }
                },
                Err(ReadlineError::Interrupted) => return Ok(Line::Dropped),
                Err(ReadlineError::Eof) => return Ok(Line::End),
                Err(ReadlineError::Signal(_)) => return Err(Failure::Interrupted),
                Err(error) => return Err(terminal_failure(error)),
            }
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

fn next_of_stdin() -> Result<Line, Failure> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) => Ok(Line::End),
        Ok(_) => Ok(Line::Text(line.trim_end_matches(['\n', '\r']).to_owned())),
        Err(error) => Err(Failure::failed(format!("cannot read stdin: {error}"))),
    }
}

fn terminal_failure(error: ReadlineError) -> Failure {
    Failure::failed(format!("cannot read from the terminal: {error}"))
        .hint("messages can also be piped into stdin, one per line")
}
