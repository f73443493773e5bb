//! What a name of another program means here: one row an option.

/// An option of another program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its spellings, with their dashes.
    pub(crate) names: &'static [&'static str],
    /// Its value.
    pub(crate) takes: Takes,
    /// What it means here.
    pub(crate) means: Means,
    /// The values that the row is about; empty for all. A row with values also counts for an option that
    /// the command has itself.
    pub(crate) values: &'static [&'static str],
    /// The commands that the row is about; empty for all.
    pub(crate) commands: &'static [&'static str],
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// None.
    Nothing,
    /// The next word.
    Value,
    /// The next word, if it is one of these.
    Maybe(&'static [&'static str]),
}

/// The meaning of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// This option, with the same value if it has one.
    Option(&'static str),
    /// These words, without the value.
    Words(&'static [&'static str]),
    /// Its value as an argument, after all others.
    Argument,
    /// What it asks for is so without it.
    Holds,
    /// The model is of this Hugging Face repository.
    Repository,
    /// The file of that repository.
    RepositoryFile,
    /// Maximum rows of a chunk; the least counts.
    Chunk,
    /// Type of keys, or of values.
    Kv,
    /// A strategy; several are compared. Counts also where the command has the option itself.
    Strategy,
    /// Nothing here has this meaning; the sentence says what to type instead.
    Instead(&'static str),
}

/// Words that switch something on or off.
pub(super) const SWITCH: Takes =
    Takes::Maybe(&["on", "off", "auto", "0", "1", "true", "false", "enabled", "disabled"]);
/// Values of a switch that is on, or left to the program.
pub(super) const ON: &[&str] = &["on", "auto", "1", "true", "enabled", ""];
/// Values of a switch that is off.
pub(super) const OFF: &[&str] = &["off", "0", "false", "disabled"];

/// Stands for every whole number among the values of a row.
pub(super) const NUMBER: &str = "N";

/// A row for all values, in every command that has the option it means.
pub(super) const fn row(names: &'static [&'static str], takes: Takes, means: Means) -> Row {
    Row { names, takes, means, values: &[], commands: &[] }
}

/// An option with a value that has another name here.
pub(super) const fn renamed(names: &'static [&'static str], option: &'static str) -> Row {
    row(names, Takes::Value, Means::Option(option))
}

/// An option without a value, of which nothing needs to be done.
pub(super) const fn holds(names: &'static [&'static str]) -> Row {
    row(names, Takes::Nothing, Means::Holds)
}

/// An option with a value, of which nothing needs to be done.
pub(super) const fn holds_with_value(names: &'static [&'static str]) -> Row {
    row(names, Takes::Value, Means::Holds)
}

/// An option without a counterpart.
pub(super) const fn instead(names: &'static [&'static str], sentence: &'static str) -> Row {
    row(names, Takes::Nothing, Means::Instead(sentence))
}

impl Row {
    /// The row for these values only. The empty value stands for an option without one.
    pub(super) const fn of(mut self, values: &'static [&'static str]) -> Row {
        self.values = values;
        self
    }

    /// The row for these commands only.
    pub(super) const fn within(mut self, commands: &'static [&'static str]) -> Row {
        self.commands = commands;
        self
    }

    /// Whether the row is about this value; the empty one stands for none.
    pub(super) fn is_about(&self, value: &str) -> bool {
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        self.values.is_empty()
            || self.values.iter().any(|known| *known == value || (*known == NUMBER && is_number))
    }

    /// The option of the command that it needs there, without dashes.
    pub(super) fn needs(&self) -> Option<&'static str> {
        match self.means {
            Means::Option(option) => option.strip_prefix("--"),
            Means::Words(words) => words.first().and_then(|word| word.strip_prefix("--")),
            Means::Repository | Means::RepositoryFile => Some("model"),
            Means::Chunk => Some("chunk"),
            Means::Kv => Some("kv"),
            Means::Strategy => Some("strategy"),
            Means::Argument | Means::Holds | Means::Instead(_) => None,
        }
    }
}
