//! Where a chat's turns come from: a line editor on a terminal, else the lines of stdin.

use std::path::PathBuf;

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::cli::failure::Failure;
use crate::cli::session::Session;

/// One thing the user did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A turn, perhaps of several lines.
    Text(String),
    /// Ctrl-C while typing.
    Dropped,
    /// Nothing more will come.
    End,
}

/// Lines, read one at a time.
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
    /// Turns are typed; those of earlier chats can be called back.
    pub(super) fn editor(history: Option<PathBuf>, session: &Session) -> Result<Lines, Failure> {
        let mut editor = DefaultEditor::new().map_err(broken)?;
        if let Some(path) = &history
            && path.exists()
            && let Err(error) = editor.load_history(path)
        {
            session.note(&format!("note: the history {} is not used: {error}", path.display()));
        }
        Ok(Lines::Editor(Box::new(Editor { editor, history })))
    }

    /// Every line of stdin is a turn.
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
                Err(error) => return Err(broken(error)),
            }
        }
    }

    /// Kept at once, so that a chat that is killed loses nothing.
    fn remember(&mut self, line: &str) -> Result<(), Failure> {
        let Some(path) = &self.history else { return Ok(()) };
        if line.trim().is_empty() || !self.editor.add_history_entry(line).map_err(broken)? {
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
                .hint("--history FILE names another file, --no-history keeps none")
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

fn broken(error: ReadlineError) -> Failure {
    Failure::failed(format!("the terminal cannot be used for typing: {error}"))
        .hint("turns can also be piped into stdin, one per line")
}
