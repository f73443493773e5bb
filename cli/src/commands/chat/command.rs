//! Commands of a chat: lines that begin with a slash.

use std::fmt::Write;
use std::path::PathBuf;

/// What a typed line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    /// Nothing: the line is empty.
    Nothing,
    /// An answer to this message.
    Answer(String),
    /// A command.
    Command(Command),
}

/// A command.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// List the commands.
    Help,
    /// Show the instructions, or change them.
    System(Option<String>),
    /// Show the settings, or change one.
    Set(Option<(String, String)>),
    /// Show the figures of the latest answer, or turn them on or off for every answer.
    Stats(Option<bool>),
    /// Write the conversation to a file.
    Save(PathBuf),
    /// Replace the conversation by that of a file.
    Load(PathBuf),
    /// Show the model, or continue with another one.
    Model(Option<String>),
    /// Forget the conversation.
    Clear,
    /// Leave.
    Exit,
}

/// Why a line is no command.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CommandError {
    /// There is no such command.
    #[error("unknown command {name}; the commands are:\n{}", help())]
    Unknown {
        /// What was typed.
        name: String,
    },
    /// Its arguments are wrong.
    #[error("usage: {usage}")]
    Usage {
        /// How the command is written.
        usage: &'static str,
    },
}

/// Form and purpose of every command.
const COMMANDS: [(&str, &str); 9] = [
    ("/help", "show this list"),
    ("/system [TEXT|none]", "show, set or remove the instructions to the model"),
    ("/set [NAME VALUE]", "show the sampling settings, or change one: /set temp 0.2"),
    ("/stats [on|off]", "show the speed of the latest answer, or of every answer"),
    ("/save FILE", "write the conversation to FILE, as JSON"),
    ("/load FILE", "continue the conversation of FILE"),
    ("/model [MODEL]", "show the model, or continue with another one"),
    ("/clear", "forget the conversation, keep the instructions (also /reset)"),
    ("/exit", "leave (also /quit, Ctrl-D)"),
];

/// The list of commands.
pub(super) fn help() -> String {
    let mut text = String::new();
    for (form, purpose) in COMMANDS {
        let _ = writeln!(text, "  {form:21}{purpose}");
    }
    text.push_str(
        "A text between \"\"\" and \"\"\" is one message, whatever it holds; a line that ends in \\ \
         continues\non the next one. Ctrl-C stops an answer.",
    );
    text
}

/// How a command is written.
fn usage(name: &str) -> CommandError {
    let forms = COMMANDS.iter().map(|(form, _)| *form);
    let usage = forms.into_iter().find(|form| form.split(' ').next() == Some(name));
    CommandError::Usage { usage: usage.unwrap_or_default() }
}

/// Reads a line. A first word such as `/usr/bin`, with anything but letters after its slash, begins a
/// message.
pub(super) fn parse(line: &str) -> Result<Asked, CommandError> {
    let text = line.trim();
    if text.is_empty() {
        return Ok(Asked::Nothing);
    }
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let is_command = name.strip_prefix('/').is_some_and(|word| {
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || c == '_' || c == '-')
    });
    if !is_command {
        return Ok(Asked::Answer(line.to_owned()));
    }
    let argument = (!rest.is_empty()).then(|| rest.to_owned());
    let command = match (name, argument) {
        ("/help", None) => Command::Help,
        ("/system", text) => Command::System(text),
        ("/set", None) => Command::Set(None),
        ("/set", Some(pair)) => match pair.split_once([' ', '\t', '=']) {
            Some((name, value)) if !value.trim().is_empty() => {
                Command::Set(Some((name.to_owned(), value.trim().to_owned())))
            }
            _ => return Err(usage(name)),
        },
        ("/stats", None) => Command::Stats(None),
        ("/stats", Some(state)) if state == "on" => Command::Stats(Some(true)),
        ("/stats", Some(state)) if state == "off" => Command::Stats(Some(false)),
        ("/save", Some(path)) => Command::Save(file(&path)),
        ("/load", Some(path)) => Command::Load(file(&path)),
        ("/model", model) => Command::Model(model),
        ("/clear" | "/reset", None) => Command::Clear,
        ("/exit" | "/quit", None) => Command::Exit,
        ("/reset", _) => return Err(usage("/clear")),
        ("/quit", _) => return Err(usage("/exit")),
        ("/help" | "/stats" | "/save" | "/load" | "/clear" | "/exit", _) => {
            return Err(usage(name));
        }
        _ => return Err(CommandError::Unknown { name: name.to_owned() }),
    };
    Ok(Asked::Command(command))
}

/// A typed file name; `~/` is the home folder, as in a shell.
fn file(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_understood() {
        let set = |name: &str, value: &str| Command::Set(Some((name.into(), value.into())));
        let rows = [
            ("/help", Command::Help),
            ("  /help  ", Command::Help),
            ("/system", Command::System(None)),
            ("/system  Be  brief. ", Command::System(Some("Be  brief.".into()))),
            ("/set", Command::Set(None)),
            ("/set temp 0.2", set("temp", "0.2")),
            ("/set temp=0.2", set("temp", "0.2")),
            ("/stats", Command::Stats(None)),
            ("/stats on", Command::Stats(Some(true))),
            ("/stats off", Command::Stats(Some(false))),
            ("/save my chat.json", Command::Save("my chat.json".into())),
            ("/load a.json", Command::Load("a.json".into())),
            ("/model", Command::Model(None)),
            ("/model smollm2", Command::Model(Some("smollm2".into()))),
            ("/clear", Command::Clear),
            ("/reset", Command::Clear),
            ("/exit", Command::Exit),
            ("/quit", Command::Exit),
        ];
        for (line, command) in rows {
            assert_eq!(parse(line), Ok(Asked::Command(command)), "{line:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_answered_with_the_form() {
        let rows = [
            ("/help me", "/help"),
            ("/set temp", "/set [NAME VALUE]"),
            ("/stats maybe", "/stats [on|off]"),
            ("/save", "/save FILE"),
            ("/load", "/load FILE"),
            ("/clear all", "/clear"),
            ("/reset all", "/clear"),
            ("/exit now", "/exit"),
            ("/quit now", "/exit"),
        ];
        for (line, form) in rows {
            assert_eq!(parse(line), Err(CommandError::Usage { usage: form }), "{line:?}");
        }
    }

    #[test]
    fn an_unknown_command_is_answered_with_the_list() {
        for line in ["/nonsense", "/nonsense with words", "/HELP"] {
            let error = parse(line).expect_err(line).to_string();
            for (form, _) in COMMANDS {
                assert!(error.contains(form), "{error}");
            }
        }
    }

    #[test]
    fn other_lines_are_messages() {
        for line in ["hello", "/usr/bin/env is what?", "/", "/ 2", "/2", "a /help", "//comment"] {
            assert_eq!(parse(line), Ok(Asked::Answer(line.to_owned())), "{line:?}");
        }
        for line in ["", "  ", "\t"] {
            assert_eq!(parse(line), Ok(Asked::Nothing), "{line:?}");
        }
    }
}
