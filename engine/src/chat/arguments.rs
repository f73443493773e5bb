//! Arguments of filters, functions and methods, by position or by name as in Python.

use minijinja::value::{Kwargs, Rest, from_args};
use minijinja::{Error, ErrorKind, Value};

/// The arguments of a call, in the order of the parameters.
#[derive(Debug)]
pub(super) struct Arguments {
    of: String,
    parameters: &'static [&'static str],
    values: Vec<Option<Value>>,
}

impl Arguments {
    /// Binds the arguments of a call of `of` to its parameters.
    ///
    /// # Errors
    /// If there are more than parameters, or an argument has another name.
    pub(super) fn bind(
        of: &str,
        parameters: &'static [&'static str],
        given: &[Value],
    ) -> Result<Arguments, Error> {
        let (positional, named): (Rest<Value>, Kwargs) = from_args(given)?;
        let refuse = |kind, what: String| Err(Error::new(kind, format!("'{of}' {what}")));
        if positional.len() > parameters.len() {
            let most = parameters.len();
            return refuse(ErrorKind::TooManyArguments, format!("has at most {most} arguments"));
        }
        let mut values: Vec<Option<Value>> = positional.0.into_iter().map(Some).collect();
        values.resize(parameters.len(), None);
        for name in named.args() {
            let Some(at) = parameters.iter().position(|parameter| *parameter == name) else {
                let what = format!("has no argument '{name}'");
                return refuse(ErrorKind::TooManyArguments, what);
            };
            values[at] = Some(named.get(name)?);
        }
        Ok(Arguments { of: of.to_owned(), parameters, values })
    }

    /// An argument, if it was given.
    pub(super) fn get(&self, at: usize) -> Option<&Value> {
        self.values.get(at)?.as_ref()
    }

    /// An argument, if it was given and is not none.
    pub(super) fn some(&self, at: usize) -> Option<&Value> {
        self.get(at).filter(|value| !value.is_none())
    }

    /// An argument that must be given.
    pub(super) fn need(&self, at: usize) -> Result<&Value, Error> {
        self.get(at).ok_or_else(|| {
            let what = format!("'{}' needs the argument '{}'", self.of, self.parameters[at]);
            Error::new(ErrorKind::MissingArgument, what)
        })
    }

    /// A text, if it was given and is not none.
    pub(super) fn text(&self, at: usize) -> Result<Option<&str>, Error> {
        let Some(value) = self.some(at) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(at, "a text"))
    }

    /// A text that must be given.
    pub(super) fn need_text(&self, at: usize) -> Result<&str, Error> {
        self.need(at)?.as_str().ok_or_else(|| self.wrong(at, "a text"))
    }

    /// An integer, if it was given and is not none.
    pub(super) fn integer(&self, at: usize) -> Result<Option<i64>, Error> {
        let Some(value) = self.some(at) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| self.wrong(at, "an integer"))
    }

    /// Whether an argument is true.
    pub(super) fn flag(&self, at: usize) -> bool {
        self.get(at).is_some_and(Value::is_true)
    }

    /// The given arguments, up to the last one, where missing ones are undefined.
    pub(super) fn positional(&self) -> Vec<Value> {
        let count = self.values.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        self.values[..count].iter().map(|value| value.clone().unwrap_or_default()).collect()
    }

    fn wrong(&self, at: usize, expected: &str) -> Error {
        let what =
            format!("the argument '{}' of '{}' is not {expected}", self.parameters[at], self.of);
        Error::new(ErrorKind::InvalidOperation, what)
    }
}
