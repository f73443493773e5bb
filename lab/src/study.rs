//! Studies: scenarios, strategies, parameters and seeds in one file, and their results in one folder, which is the same at each
//! run.
//!
//! ```no_run
//! use lapwing::study::{Begin, Study};
//!
//! let study = Study::read("examples/studies/gpu_and_npu.toml", |_| None)?;
//! let mut run = study.begin("gpu-and-npu-results".as_ref(), Begin::New)?;
//! run.go_on(&mut |_| true)?;
//! let files = run.finish()?;
//! assert!(files.iter().any(|file| file == "index.html"));
//! # Ok::<(), lapwing::study::StudyError>(())
//! ```
//!
//! `docs/study.md` describes the file and the folder.

use std::path::{Path, PathBuf};

use crate::simulate::{Axis, Change, SEED, SimulateError, Sweep, combination, combinations};

mod error;
mod file;
mod folder;
mod journal;
mod manifest;
mod numbers;
mod page;
mod phone;
mod run;
mod server;
mod speculate;
mod subject;
#[cfg(test)]
mod tests;

pub use error::StudyError;
use error::Wrong;
use file::{ScenarioText, Setting, StudyText};
pub use folder::Begin;
pub use numbers::Numbers;
pub use run::{ScenarioSummary, StudyProgress, StudyRun};
use subject::{COMMANDS, Misfit, Places, Subject, subject};

/// The setting that chooses processors.
const SOC: &str = "soc";

/// A study that was read and checked.
pub struct Study {
    /// Its title.
    pub title: String,
    /// What it is about; empty lines separate paragraphs.
    pub about: String,
    path: PathBuf,
    text: String,
    places: Places,
    scenarios: Vec<StudyScenario>,
}

/// A scenario of a study: a sweep that is not run yet.
struct StudyScenario {
    name: String,
    about: String,
    command: String,
    line: usize,
    /// With the settings that do not vary.
    base: Box<dyn Subject>,
    /// Keys and values as they are written, with their lines.
    settings: Vec<Setting>,
    /// Those that vary; the seed is the last.
    axes: Vec<Axis>,
    figures: Option<Wanted>,
    against: Option<Wanted>,
}

/// What a study shows, or compares.
#[derive(Clone, Debug)]
struct Wanted {
    line: usize,
    values: Vec<String>,
    /// Whether it is the scenario's own, so that the scenario must have it.
    own: bool,
}

impl Study {
    /// Reads and checks a study. `models` finds the file of a fetched model by its name.
    ///
    /// # Errors
    /// [`StudyError::Io`], and [`StudyError::Line`] with the line that is wrong.
    pub fn read(
        path: impl AsRef<Path>,
        models: fn(&str) -> Option<PathBuf>,
    ) -> Result<Study, StudyError> {
        let path = path.as_ref().to_owned();
        let text = std::fs::read_to_string(&path).map_err(|source| StudyError::Io {
            doing: "read the study",
            path: path.clone(),
            source,
        })?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let places = Places { folder, models };
        let checked = StudyText::read(&text).and_then(|read| checked(read, &places));
        let wrong = |Wrong { line, reason }| StudyError::Line { path: path.clone(), line, reason };
        let Checked { title, about, scenarios } = checked.map_err(wrong)?;
        Ok(Study { title, about, path, text, places, scenarios })
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.scenarios.iter().map(StudyScenario::count).sum()
    }

    /// Name of the file, without its end.
    pub fn name(&self) -> String {
        self.path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

struct Checked {
    title: String,
    about: String,
    scenarios: Vec<StudyScenario>,
}

fn checked(read: StudyText, places: &Places) -> Result<Checked, Wrong> {
    let mut scenarios: Vec<StudyScenario> = Vec::new();
    for scenario in &read.scenarios {
        if scenarios.iter().any(|known| known.name == scenario.name) {
            let reason = format!("two scenarios are named '{}'; rename one", scenario.name);
            return Err(Wrong::new(scenario.line, reason));
        }
        scenarios.push(StudyScenario::new(&read, scenario, places)?);
    }
    if let Some(against) = scenarios.iter().find_map(|it| it.against.as_ref()) {
        let is_found = |it: &StudyScenario| it.reference().is_some();
        if !scenarios.iter().any(is_found) {
            let reason = format!("no scenario varies '{}'", against.values.join(", "));
            return Err(Wrong::new(against.line, reason));
        }
    }
    let title = if read.title.is_empty() { "A study".to_owned() } else { read.title };
    Ok(Checked { title, about: read.about, scenarios })
}

impl StudyScenario {
    fn new(
        study: &StudyText,
        text: &ScenarioText,
        places: &Places,
    ) -> Result<StudyScenario, Wrong> {
        let command = text.command.as_ref().map_or(Ok("simulate"), Setting::one)?;
        let line = text.command.as_ref().map_or(text.line, |command| command.line);
        let unknown = || Wrong::unknown(line, "command", command, &COMMANDS);
        let mut base = subject(command, places).ok_or_else(unknown)?;
        let settings = joined(&study.settings, &text.settings);
        let mut fixed: Vec<&Setting> = settings.iter().filter(|it| !it.varies).collect();
        // A SoC has its numbers, which come after it.
        fixed.sort_by_key(|setting| setting.key != SOC);
        fixed.into_iter().try_for_each(|setting| set(&mut *base, setting, &setting.values[0]))?;
        let varied = settings.iter().filter(|setting| setting.varies);
        let mut axes: Vec<Axis> =
            varied.map(|it| Axis { key: it.key.clone(), values: it.values.clone() }).collect();
        axes.sort_by_key(|axis| axis.key == SEED);
        if let Some(seeds) = &study.seeds {
            if let Some(own) = settings.iter().find(|setting| setting.key == SEED) {
                return Err(Wrong::new(own.line, "'seeds' gives all seeds; remove 'seed'"));
            }
            axes.push(seeds_of(seeds)?);
        }
        combinations(&axes).map_err(|error| Wrong::new(text.line, error.to_string()))?;
        let mut scenario = StudyScenario {
            name: text.name.clone(),
            about: text.about.clone(),
            command: command.to_owned(),
            line: text.line,
            base,
            settings,
            axes,
            figures: wanted(text.figures.as_ref(), study.figures.as_ref()),
            against: wanted(text.against.as_ref(), study.against.as_ref()),
        };
        scenario.check()?;
        Ok(scenario)
    }

    /// Checks each value of each axis, and all settings together.
    fn check(&mut self) -> Result<(), Wrong> {
        for axis in self.axes.iter().filter(|axis| axis.key != SEED) {
            let setting = self.settings.iter().find(|setting| setting.key == axis.key);
            for value in &axis.values {
                let mut subject = self.base.copy();
                setting.into_iter().try_for_each(|setting| set(&mut *subject, setting, value))?;
            }
        }
        for values in self.dependent() {
            let subject = self.subject(&values);
            let subject = subject.map_err(|error| Wrong::new(self.line, error.to_string()))?;
            subject.check().map_err(|misfit| self.misfit(misfit))?;
        }
        let Some(against) = self.against.as_ref().filter(|against| against.own) else {
            return Ok(());
        };
        let wrong = |error: SimulateError| Wrong::new(against.line, error.to_string());
        let change: Change = against.values.join(",").parse().map_err(wrong)?;
        Axis::with_value(&self.axes, &change.key, &change.value).map_err(wrong).map(|_| ())
    }

    /// The values of the axes at which settings may not fit each other: each combination of dependent ones, with the first value of others.
    fn dependent(&self) -> impl Iterator<Item = Vec<String>> {
        let keys = self.base.dependent();
        let all = (0..self.count()).map(|number| combination(&self.axes, number));
        all.filter(move |values| {
            let mut pairs = self.axes.iter().zip(values);
            pairs.all(|(axis, value)| keys.contains(&&*axis.key) || *value == axis.values[0])
        })
    }

    /// A setting that does not fit others, with its line.
    fn misfit(&self, Misfit { key, reason }: Misfit) -> Wrong {
        let line = self.settings.iter().find(|setting| setting.key == key);
        let line = line.map_or(self.line, |setting| setting.line);
        let named = if key.is_empty() { reason } else { format!("'{key}': {reason}") };
        Wrong::new(line, named)
    }

    /// What the values of the axes make of it.
    fn subject(&self, values: &[String]) -> Result<Box<dyn Subject>, SimulateError> {
        let mut subject = self.base.copy();
        let mut pairs: Vec<_> = self.axes.iter().map(|axis| &axis.key).zip(values).collect();
        pairs.sort_by_key(|(key, _)| *key != SOC);
        for (key, value) in pairs {
            subject.set(key, value)?;
        }
        Ok(subject)
    }

    fn count(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// The value with which others are compared, if the scenario varies it.
    fn reference(&self) -> Option<Change> {
        let change: Change = self.against.as_ref()?.values.join(",").parse().ok()?;
        Axis::with_value(&self.axes, &change.key, &change.value).ok().map(|_| change)
    }

    /// A sweep without runs.
    fn sweep(&self) -> Sweep<Numbers> {
        let fixed = self.settings.iter().filter(|setting| !setting.varies);
        Sweep {
            axes: self.axes.clone(),
            labels: self.axes.iter().map(|axis| self.base.label(axis)).collect(),
            settings: fixed.map(|it| (it.key.clone(), it.values[0].clone())).collect(),
            points: Vec::new(),
        }
    }
}

/// The settings of all scenarios that one does not have, and its own.
fn joined(of_all: &[Setting], own: &[Setting]) -> Vec<Setting> {
    let others = of_all.iter().filter(|setting| own.iter().all(|it| it.key != setting.key));
    others.chain(own).cloned().collect()
}

/// Changes a setting. Its error has the line.
fn set(subject: &mut dyn Subject, setting: &Setting, value: &str) -> Result<(), Wrong> {
    let Setting { line, key, .. } = setting;
    let keys = subject.keys();
    if !keys.iter().any(|known| known == key) {
        let known: Vec<&str> = keys.iter().map(String::as_str).chain(ScenarioText::KEYS).collect();
        return Err(Wrong::unknown(*line, "key", key, &known));
    }
    subject.set(key, value).map_err(|error| Wrong::new(*line, error.to_string()))
}

fn wanted(own: Option<&Setting>, of_all: Option<&Setting>) -> Option<Wanted> {
    let of = |setting: &Setting, own| {
        let (line, values) = (setting.line, setting.values.clone());
        Wanted { line, values, own }
    };
    own.map(|it| of(it, true)).or_else(|| of_all.map(|it| of(it, false)))
}

/// The seeds of a number, or of a list.
fn seeds_of(setting: &Setting) -> Result<Axis, Wrong> {
    let wrong = || {
        let expected = "it must be a number of seeds from 1 to 10000, or a list of seeds";
        Wrong::new(setting.line, format!("'seeds': {expected}"))
    };
    let numbers = setting.values.iter().map(|value| value.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect::<Option<_>>().ok_or_else(wrong)?;
    let values = match (&numbers[..], setting.varies) {
        ([count @ 1..=10_000], false) => (0..*count).map(|seed| seed.to_string()).collect(),
        (_, true) => numbers.iter().map(u64::to_string).collect(),
        _ => return Err(wrong()),
    };
    Ok(Axis { key: SEED.to_owned(), values })
}
