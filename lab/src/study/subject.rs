//! What a scenario of a study runs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lapwing_actors::draft::DraftForm;

use super::numbers::Numbers;
use super::phone::Phone;
use super::server::ModelledServer;
use super::speculate::Drafts;
use crate::load::{LoadRequest, Trace};
use crate::simulate::labels::multiple_label;
use crate::simulate::{Axis, SimulateError};

/// Where files and models of a study are found.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The study's folder, from which paths are relative.
    pub(super) folder: PathBuf,
    /// Finds a fetched model by its name.
    pub(super) models: fn(&str) -> Option<PathBuf>,
}

impl Places {
    pub(super) fn path(&self, text: &str) -> PathBuf {
        self.folder.join(text)
    }

    /// The path of a model's file, if its text names one.
    pub(super) fn model(&self, text: &str) -> Option<PathBuf> {
        let beside = self.path(text);
        if beside.is_file() { Some(beside) } else { (self.models)(text) }
    }

    /// The requests of a trace.
    pub(super) fn trace(&self, key: &str, text: &str) -> Result<Vec<LoadRequest>, SimulateError> {
        let wrong = |reason: String| bad(key, text, reason);
        let file = File::open(self.path(text)).map_err(|error| wrong(error.to_string()))?;
        Ok(Trace::read(file).map_err(|error| wrong(error.to_string()))?.requests)
    }
}

/// A setting that does not fit others.
pub(super) struct Misfit {
    pub(super) key: String,
    pub(super) reason: String,
}

impl Misfit {
    pub(super) fn new(key: &str, reason: impl Into<String>) -> Misfit {
        Misfit { key: key.to_owned(), reason: reason.into() }
    }
}

/// What a scenario runs, with its settings.
pub(super) trait Subject {
    /// All keys of [`set`](Subject::set).
    fn keys(&self) -> Vec<String>;

    /// Changes a setting. Keys that are not of [`keys`](Subject::keys) are errors.
    fn set(&mut self, key: &str, value: &str) -> Result<(), SimulateError>;

    /// Checks settings that need each other, when all are set.
    fn check(&self) -> Result<(), Misfit>;

    /// Keys whose values need each other, so that [`check`](Subject::check) must hold for each combination of them.
    fn dependent(&self) -> &'static [&'static str] {
        &[]
    }

    fn run(&self) -> Result<Numbers, SimulateError>;

    /// A copy.
    fn copy(&self) -> Box<dyn Subject>;

    /// Results that are shown if the study names none.
    fn figures(&self) -> &'static [&'static str];

    /// The file of processors, by a preset's name or a path; `None` if it has none.
    fn preset(&self, _soc: &str) -> Result<Option<String>, SimulateError> {
        Ok(None)
    }

    /// The paths of texts that a setting names.
    fn files<'a>(&self, _key: &str, _value: &'a str) -> Vec<&'a str> {
        Vec::new()
    }

    /// An axis in words.
    fn label(&self, axis: &Axis) -> String {
        match axis.values.iter().all(|value| value.ends_with('x') || value.ends_with('%')) {
            true => multiple_label(&axis.key),
            false => axis.key.replace(['-', '.'], " "),
        }
    }
}

/// The processors of a scenario that names none.
pub(super) const DEFAULT_SOC: &str = "sd8gen3";

/// The commands that a scenario may be like.
pub(super) const COMMANDS: [&str; 3] = ["simulate", "load", "speculate"];

/// What a command runs, with its defaults. `None` if there is no such command.
pub(super) fn subject(command: &str, places: &Places) -> Option<Box<dyn Subject>> {
    Some(match command {
        "simulate" => Box::new(Phone::new(places).ok()?),
        "load" => Box::new(ModelledServer::new(places)),
        "speculate" => Box::<Drafts>::default(),
        _ => return None,
    })
}

/// That a key cannot have a value.
pub(super) fn bad(key: &str, value: &str, expected: impl Into<String>) -> SimulateError {
    SimulateError::BadValue {
        key: key.to_owned(),
        value: value.to_owned(),
        expected: expected.into(),
    }
}

/// A value read from its text.
pub(super) fn read<T: FromStr>(key: &str, value: &str, expected: &str) -> Result<T, SimulateError> {
    value.parse().map_err(|_| bad(key, value, expected))
}

/// `on` or `off`.
pub(super) fn switch(key: &str, value: &str) -> Result<bool, SimulateError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(bad(key, value, "it must be true or false")),
    }
}

/// A length of drafts: `None` for `auto`.
pub(super) fn length(key: &str, value: &str) -> Result<Option<usize>, SimulateError> {
    if value == "auto" {
        return Ok(None);
    }
    let length = value.parse().ok().filter(|length| (1..=15).contains(length));
    length.map(Some).ok_or_else(|| bad(key, value, "it must be from 1 to 15, or auto"))
}

/// Changes how drafts depart from their usual form.
pub(super) fn set_form(form: &mut DraftForm, key: &str, value: &str) -> Result<(), SimulateError> {
    let is_on = switch(key, value)?;
    match key {
        "sync-bonus-pass" => form.bonus_pass = is_on,
        "pre-verify" => form.pre_verify = is_on,
        _ => form.post_verify = is_on,
    }
    Ok(())
}

/// The rates of a list such as `0.9, 0.7`.
pub(super) fn rates(key: &str, value: &str) -> Result<Vec<f64>, SimulateError> {
    let rates = value.split(',').map(|rate| rate.trim().parse().ok());
    let rates = rates.map(|rate| rate.filter(|rate| (0.0..=1.0).contains(rate)));
    let expected = "it must be a probability from 0 to 1, or several with commas between them, by position in a draft";
    rates.collect::<Option<Vec<f64>>>().ok_or_else(|| bad(key, value, expected))
}

/// Name of the copy of a file.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
