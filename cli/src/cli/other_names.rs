//! Command lines with names of other programs: llama.cpp, Ollama, vLLM and mistral.rs.
//!
//! A name with a counterpart is replaced before the command line is parsed; for one without, the error
//! says what to type instead. The names of a command itself always win. `docs/names.md` lists the tables.

mod commands;
mod environment;
mod gathered;
mod llama_cpp;
mod ollama;
mod row;
#[cfg(test)]
mod tests;
mod unknown;
mod vllm;

use std::collections::VecDeque;
use std::ffi::OsString;

use clap::Command;

use self::commands::Meaning;
use self::gathered::Gathered;
use self::row::{Means, Row, Takes};
use super::failure::Failure;

pub(crate) use environment::note_unread;

/// A program, and its names.
type Table = (&'static str, &'static [Row]);

/// All names, in the order in which they are looked up.
const TABLES: [Table; 5] = [
    ("llama.cpp", llama_cpp::KNOWN),
    ("llama.cpp", llama_cpp::WITHOUT),
    ("llama.cpp", llama_cpp::SERVING),
    ("Ollama", ollama::ROWS),
    ("vLLM", vllm::ROWS),
];

/// The words of the command line in the program's own names. `cli` is built; the first word is the
/// program.
///
/// # Errors
/// For an unknown option, and for a name that has no counterpart here.
pub(crate) fn translated(
    cli: &Command,
    words: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>, Failure> {
    let mut rest: VecDeque<OsString> = words.into_iter().collect();
    let mut done: Vec<OsString> = rest.pop_front().into_iter().collect();
    let name = loop {
        let Some(word) = rest.pop_front() else { return Ok(done) };
        match word.to_str() {
            Some(text) if text.starts_with('-') && text != "-" => {
                if !has(cli, text.split('=').next().unwrap_or(text)) {
                    return Err(unknown::before_a_command(text));
                }
                done.push(word);
            }
            Some(text) => break text.to_owned(),
            None => {
                done.push(word);
                done.extend(rest);
                return Ok(done);
            }
        }
    };
    let name = match commands::meaning(&name) {
        Some(Meaning::Words(words)) => {
            words.iter().skip(1).rev().for_each(|word| rest.push_front((*word).into()));
            words[0].to_owned()
        }
        Some(Meaning::Instead(sentence)) => {
            return Err(Failure::instead(format!("'{name}' is a command of Ollama: {sentence}")));
        }
        None => name,
    };
    let Some(command) = cli.find_subcommand(&name) else {
        return match name.starts_with('-') {
            true => {
                done.push(name.into());
                Ok(done)
            }
            false => Err(unknown::command(cli, &name)),
        };
    };
    done.push(name.into());
    // `help COMMAND` has only names of commands.
    match command.get_name() {
        "help" => done.extend(rest),
        _ => Words { command, done: &mut done, gathered: Gathered::default() }.translate(rest)?,
    }
    Ok(done)
}

/// The words of a command.
struct Words<'a> {
    command: &'a Command,
    done: &'a mut Vec<OsString>,
    gathered: Gathered,
}

impl Words<'_> {
    fn translate(mut self, mut rest: VecDeque<OsString>) -> Result<(), Failure> {
        while let Some(word) = rest.pop_front() {
            match word.to_str() {
                Some("--") => {
                    self.done.extend(self.gathered.options()?);
                    self.done.push(word);
                    self.done.extend(rest);
                    self.done.extend(self.gathered.arguments());
                    return Ok(());
                }
                Some(text) if is_option(text) => {
                    let text = text.to_owned();
                    self.option(&text, &mut rest)?;
                }
                _ => self.done.push(word),
            }
        }
        self.done.extend(self.gathered.options()?);
        let arguments = self.gathered.arguments();
        if !arguments.is_empty() {
            self.done.push("--".into());
            self.done.extend(arguments);
        }
        Ok(())
    }

    /// Takes an option, with its value if it has one.
    fn option(&mut self, text: &str, rest: &mut VecDeque<OsString>) -> Result<(), Failure> {
        let (name, inline) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let next = rest.front().and_then(|word| word.to_str());
        let Some((program, row)) = self.row(name, inline.as_deref().or(next)) else {
            if has(self.command, name) || is_short_with_value(text) {
                self.done.push(text.into());
                return Ok(());
            }
            return Err(unknown::option(self.command, name));
        };
        let value = match (row.takes, inline) {
            (Takes::Nothing, _) => None,
            (_, Some(value)) => Some(value.into()),
            (Takes::Maybe(words), None) => {
                if next.is_some_and(|next| words.contains(&next)) {
                    rest.pop_front()
                } else {
                    None
                }
            }
            // A name without a counterpart needs no value to be explained.
            (Takes::Value, None) => match (rest.pop_front(), row.means) {
                (None, Means::Instead(_)) => None,
                (None, _) => {
                    return Err(Failure::instead(format!("'{name}' needs a value after it")));
                }
                (value, _) => value,
            },
        };
        let said = value.as_ref().filter(|_| !row.values.is_empty());
        let said = said.map_or(name.to_owned(), |value| format!("{name} {}", value.display()));
        let value = value.unwrap_or_default();
        match row.means {
            Means::Option(option) => {
                self.done.push(option.into());
                if row.takes != Takes::Nothing {
                    self.done.push(value);
                }
            }
            Means::Words(words) => self.done.extend(words.iter().map(OsString::from)),
            Means::Holds => {}
            Means::Argument => self.gathered.argument(value),
            Means::Repository => self.gathered.repository(value),
            Means::RepositoryFile => self.gathered.file(value),
            Means::Chunk => self.gathered.chunk(value),
            Means::Kv => self.gathered.kv(&said, &value)?,
            Means::Strategy => self.gathered.strategy(value),
            Means::Instead(sentence) => {
                return Err(Failure::instead(format!("'{said}' of {program}: {sentence}")));
            }
        }
        Ok(())
    }

    /// The row of a name in this command, before this word or with this value.
    fn row(&self, name: &str, value: Option<&str>) -> Option<(&'static str, Row)> {
        let is_own = has(self.command, name);
        let command = self.command.get_name();
        let counts = |row: &Row| {
            let is_switch_word =
                |value: &&str| !matches!(row.takes, Takes::Maybe(words) if !words.contains(value));
            row.names.contains(&name)
                && (row.commands.is_empty() || row.commands.contains(&command))
                && row.is_about(value.filter(is_switch_word).unwrap_or_default())
                && (!is_own || !row.values.is_empty() || row.means == Means::Strategy)
                && row.needs().is_none_or(|option| has(self.command, &format!("--{option}")))
        };
        TABLES.iter().find_map(|(program, rows)| {
            rows.iter().find(|row| counts(row)).map(|row| (*program, *row))
        })
    }
}

/// Whether a word is an option, not a value such as `-` or a negative number.
fn is_option(word: &str) -> bool {
    let rest = word.strip_prefix('-').unwrap_or_default();
    !rest.is_empty() && !rest.starts_with(|first: char| first.is_ascii_digit() || first == '.')
}

/// Whether a word can only be a short option with its value, as `-n8` and `-ofile.json`. Letters alone are
/// the name of an option of another program more often.
fn is_short_with_value(word: &str) -> bool {
    let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
    let is_short = letters.next().is_some_and(|first| first.is_ascii_alphabetic());
    let rest = letters.as_str();
    is_short && !rest.is_empty() && !rest.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
}

/// Whether a command has an option of this name, given with its dashes.
fn has(command: &Command, name: &str) -> bool {
    let long = name.strip_prefix("--");
    let short = name.strip_prefix('-').filter(|_| long.is_none()).and_then(|rest| {
        let mut letters = rest.chars();
        letters.next().filter(|_| letters.as_str().is_empty())
    });
    command.get_arguments().any(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        let mut longs = arg.get_long().into_iter().chain(aliases);
        let aliases = arg.get_all_short_aliases().unwrap_or_default();
        let mut shorts = arg.get_short().into_iter().chain(aliases);
        long.is_some_and(|long| longs.any(|known| known == long))
            || short.is_some_and(|short| shorts.any(|known| known == short))
    })
}
