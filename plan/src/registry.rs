//! What is chosen by name and changed by parameters: `NAME`, or `NAME:KEY=VALUE,…`.
//!
//! Strategies, queue policies and drafters are [entries](Entry) of a [`Registry`] each. An entry is declared beside the rule
//! that it makes, with the rule's parameters, and its registry lists it.

use std::borrow::Cow;
use std::fmt;

mod error;
mod parameters;
#[cfg(test)]
mod tests;

pub use error::{ChoiceError, NameError};
pub use parameters::{Parameter, Parameters};

/// Something that can be chosen by name. `make` makes it from the values of its parameters.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    pub(crate) name: Cow<'static, str>,
    pub(crate) about: Cow<'static, str>,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) make: T,
}

impl<T> Entry<T> {
    /// An entry with this name, effect in one line, parameters and function.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        parameters: &'static [Parameter],
        make: T,
    ) -> Entry<T> {
        Entry { name: Cow::Borrowed(name), about: Cow::Borrowed(about), parameters, make }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its effect, in one line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Its parameters.
    pub fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    /// What makes it.
    pub fn make(&self) -> &T {
        &self.make
    }

    /// The default of each of its parameters.
    pub fn defaults(&self) -> Parameters {
        Parameters::new(self.parameters.to_vec())
    }
}

/// What a text chooses.
#[derive(Clone, Debug)]
pub struct Chosen<'a, T> {
    /// The entry that has the name.
    pub entry: &'a Entry<T>,
    /// Values of the entry's parameters.
    pub parameters: Parameters,
}

/// Entries by name. It is a value, not global state.
#[derive(Clone)]
pub struct Registry<T: Clone + 'static> {
    kind: &'static str,
    entries: Cow<'static, [Entry<T>]>,
    common: &'static [Parameter],
}

impl<T: Clone> Registry<T> {
    /// A registry of what is called a `kind` in messages, with these entries, all of which also have the parameters
    /// `common`. A parameter of an entry comes before a common one of the same name.
    pub const fn new(
        kind: &'static str,
        entries: &'static [Entry<T>],
        common: &'static [Parameter],
    ) -> Registry<T> {
        Registry { kind, entries: Cow::Borrowed(entries), common }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`NameError`] when the name is taken, empty, or has other characters than letters, digits, `-` and `_`.
    pub fn with(mut self, entry: Entry<T>) -> Result<Registry<T>, NameError> {
        let (kind, name) = (self.kind, entry.name());
        let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(fits) {
            return Err(NameError::Invalid { kind, name: name.to_owned() });
        }
        if self.entries.iter().any(|known| known.name == entry.name) {
            return Err(NameError::Taken { kind, name: name.to_owned() });
        }
        self.entries.to_mut().push(entry);
        Ok(self)
    }

    /// All entries, in the order in which they were added.
    pub fn entries(&self) -> &[Entry<T>] {
        &self.entries
    }

    /// What a text chooses: `NAME`, or `NAME:KEY=VALUE,…`.
    ///
    /// # Errors
    /// [`ChoiceError`] when there is no such name or parameter, or a parameter cannot have its value.
    pub fn find(&self, text: &str) -> Result<Chosen<'_, T>, ChoiceError> {
        let (name, values) = text.split_once(':').unwrap_or((text, ""));
        let entry = self.entries.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| self.unknown(name))?;
        let is_own = |common: &&Parameter| entry.parameters.iter().any(|p| p.name == common.name);
        let common = self.common.iter().filter(|common| !is_own(common));
        let mut parameters =
            Parameters::new(entry.parameters.iter().chain(common).copied().collect());
        parameters.read(values, &format!("{} {name}", self.kind))?;
        Ok(Chosen { entry, parameters })
    }

    fn unknown(&self, name: &str) -> ChoiceError {
        let names: Vec<&str> = self.entries.iter().map(Entry::name).collect();
        ChoiceError::unknown(self.kind, name, &names)
    }
}

impl<T: Clone> fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(Entry::name)).finish()
    }
}

/// The choices of a list with commas between them: `A,B:KEY=VALUE,KEY=VALUE,C` has three. A part `KEY=VALUE` belongs to
/// the choice with parameters before it.
pub fn choices(list: &str) -> Vec<String> {
    let mut choices: Vec<String> = Vec::new();
    for part in list.split(',').map(str::trim) {
        let is_parameter = part.contains('=') && !part.contains(':');
        match choices.last_mut().filter(|before| is_parameter && before.contains(':')) {
            Some(before) => before.extend([",", part]),
            None => choices.push(part.to_owned()),
        }
    }
    choices
}
