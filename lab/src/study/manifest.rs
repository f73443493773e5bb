//! What is run, for those who read or repeat it: the study, its presets and files, versions, settings and seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::error::StudyError;
use super::folder::{INPUTS, MANIFEST, PRESETS, STUDY};
use super::subject::{DEFAULT_SOC, name_of};
use super::{SOC, Study, StudyScenario, Wrong};
use crate::simulate::SEED;

/// A file of the folder that is there before anything runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Version of the folder's form.
const FORM: u32 = 1;

#[derive(Serialize)]
struct Manifest<'a> {
    title: &'a str,
    /// Version of the folder's form.
    form: u32,
    /// Version of the program.
    lapwing: &'static str,
    runs: usize,
    scenarios: Vec<ScenarioEntry<'a>>,
    files: Vec<&'a str>,
}

#[derive(Serialize)]
struct ScenarioEntry<'a> {
    name: &'a str,
    command: &'a str,
    runs: usize,
    settings: BTreeMap<&'a str, &'a str>,
    axes: Vec<AxisEntry<'a>>,
    seeds: &'a [String],
}

#[derive(Serialize)]
struct AxisEntry<'a> {
    key: &'a str,
    values: &'a [String],
}

impl Study {
    /// The files that say what is run.
    pub(super) fn inputs(&self) -> Result<Vec<Input>, StudyError> {
        let mut inputs =
            vec![Input { name: STUDY.to_owned(), bytes: self.text.clone().into_bytes() }];
        let mut names = BTreeSet::new();
        for scenario in &self.scenarios {
            scenario.presets(&mut names, &mut inputs).map_err(|Wrong { line, reason }| {
                StudyError::Line { path: self.path.clone(), line, reason }
            })?;
            self.files(scenario, &mut names, &mut inputs)?;
        }
        let files: Vec<&str> = inputs.iter().map(|input| &*input.name).collect();
        let manifest = Manifest {
            title: &self.title,
            form: FORM,
            lapwing: env!("CARGO_PKG_VERSION"),
            runs: self.runs(),
            scenarios: self.scenarios.iter().map(ScenarioEntry::new).collect(),
            files,
        };
        let mut bytes = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
        bytes.push(b'\n');
        inputs.push(Input { name: MANIFEST.to_owned(), bytes });
        Ok(inputs)
    }

    /// Copies of the files that the settings of a scenario name.
    fn files(
        &self,
        scenario: &StudyScenario,
        names: &mut BTreeSet<String>,
        inputs: &mut Vec<Input>,
    ) -> Result<(), StudyError> {
        let values = scenario.settings.iter();
        let values = values.flat_map(|setting| setting.values.iter().map(|it| (&setting.key, it)));
        for text in values.flat_map(|(key, value)| scenario.base.files(key, value)) {
            let path = self.places.path(text);
            if !path.is_file() || !names.insert(format!("file {text}")) {
                continue;
            }
            let bytes = std::fs::read(&path).map_err(|source| StudyError::Io {
                doing: "read",
                path: path.clone(),
                source,
            })?;
            let name = free(INPUTS, &name_of(&path), inputs);
            inputs.push(Input { name, bytes });
        }
        Ok(())
    }
}

impl StudyScenario {
    /// The processors that it names, as they are before its changes.
    fn presets(&self, names: &mut BTreeSet<String>, inputs: &mut Vec<Input>) -> Result<(), Wrong> {
        let setting = self.settings.iter().find(|setting| setting.key == SOC);
        let line = setting.map_or(self.line, |setting| setting.line);
        let default = [DEFAULT_SOC.to_owned()];
        for text in setting.map_or(&default[..], |setting| &setting.values[..]) {
            let preset = self.base.preset(text);
            let preset = preset.map_err(|error| Wrong::new(line, error.to_string()))?;
            let Some(toml) = preset.filter(|_| names.insert(format!("soc {text}"))) else {
                continue;
            };
            let stem = text.rsplit('/').next().unwrap_or(text).trim_end_matches(".toml");
            let name = free(PRESETS, &format!("{stem}.toml"), inputs);
            inputs.push(Input { name, bytes: toml.into_bytes() });
        }
        Ok(())
    }
}

/// A name within a folder that no input has.
fn free(folder: &str, name: &str, inputs: &[Input]) -> String {
    let is_free = |name: &String| inputs.iter().all(|input| input.name != *name);
    let numbered = (2..).map(|number| format!("{folder}/{number}-{name}"));
    std::iter::once(format!("{folder}/{name}")).chain(numbered).find(is_free).unwrap_or_default()
}

impl ScenarioEntry<'_> {
    fn new(scenario: &StudyScenario) -> ScenarioEntry<'_> {
        let fixed = scenario.settings.iter().filter(|setting| !setting.varies);
        let varied = scenario.axes.iter().filter(|axis| axis.key != SEED);
        let seeds = scenario.axes.iter().find(|axis| axis.key == SEED);
        ScenarioEntry {
            name: &scenario.name,
            command: &scenario.command,
            runs: scenario.count(),
            settings: fixed.map(|it| (&*it.key, &*it.values[0])).collect(),
            axes: varied.map(|axis| AxisEntry { key: &axis.key, values: &axis.values }).collect(),
            seeds: seeds.map_or(&[], |seeds| &seeds.values),
        }
    }
}
