//! Runs a study, and writes its results.

use std::path::Path;

use super::error::{StudyError, Wrong};
use super::folder::{Begin, Folder};
use super::journal::{Entry, JOURNAL, Journal};
use super::numbers::Numbers;
use super::page;
use super::{Study, StudyScenario, Wanted};
use crate::simulate::{Point, Sweep, combination};

/// A study that is under way, or has ended.
pub struct StudyRun<'a> {
    study: &'a Study,
    folder: Folder,
    journal: Journal,
    /// The outcomes of each scenario.
    outcomes: Vec<Vec<Option<Result<Numbers, String>>>>,
    done: usize,
}

/// How far a study is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StudyProgress<'a> {
    /// Runs that have ended.
    pub done: usize,
    /// All runs.
    pub all: usize,
    /// The scenario of the next run.
    pub scenario: &'a str,
    /// The values of its axes.
    pub values: Vec<String>,
}

/// What became of a scenario.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScenarioSummary {
    /// Its name.
    pub name: String,
    /// The runs.
    pub sweep: Sweep<Numbers>,
    /// The results that are shown.
    pub figures: Vec<String>,
    /// Runs that have failed.
    pub failed: usize,
    /// The error of the first of them.
    pub error: Option<String>,
    /// Whether there are several seeds, and all of them have the same results.
    pub seeds_are_equal: bool,
}

impl Study {
    /// Begins to run it, with its results in a folder.
    ///
    /// # Errors
    /// [`StudyError::Exists`] if the folder has something in it already, [`StudyError::NotResumable`], [`StudyError::Io`].
    pub fn begin(&self, folder: &Path, begin: Begin) -> Result<StudyRun<'_>, StudyError> {
        let folder = Folder(folder.to_owned());
        let resumes = folder.prepare(begin, &self.inputs()?)?;
        let path = folder.0.join(JOURNAL);
        let wrong = |source| StudyError::Io { doing: "write", path: path.clone(), source };
        let (journal, entries) = match resumes {
            true => Journal::open(&folder.0).map_err(wrong)?,
            false => (Journal::create(&folder.0).map_err(wrong)?, Vec::new()),
        };
        let outcomes = self.scenarios.iter().map(|scenario| vec![None; scenario.count()]);
        let mut run =
            StudyRun { study: self, folder, journal, outcomes: outcomes.collect(), done: 0 };
        for entry in entries {
            let place = run.outcomes.get_mut(entry.scenario).and_then(|it| it.get_mut(entry.run));
            if let (Some(place @ None), Some(outcome)) = (place, entry.outcome()) {
                *place = Some(outcome);
                run.done += 1;
            }
        }
        Ok(run)
    }
}

impl StudyRun<'_> {
    /// Runs that have ended, and all runs.
    pub fn done(&self) -> (usize, usize) {
        (self.done, self.study.runs())
    }

    /// Runs what has not run yet: the first run of each scenario, which shows wrong names of results, and then the others. Calls
    /// `progress` before each run, and stops where that returns `false`. Returns whether all have run.
    ///
    /// # Errors
    /// [`StudyError::Line`] if a scenario does not have a result that it is to show; [`StudyError::Io`].
    pub fn go_on(
        &mut self,
        progress: &mut dyn FnMut(&StudyProgress<'_>) -> bool,
    ) -> Result<bool, StudyError> {
        let scenarios = &self.study.scenarios;
        let firsts: Vec<_> = (0..scenarios.len()).map(|scenario| (scenario, 0)).collect();
        if !self.run_these(firsts, progress)? {
            return Ok(false);
        }
        self.check_figures()?;
        let all = scenarios.iter().enumerate();
        let all = all.flat_map(|(at, scenario)| (0..scenario.count()).map(move |run| (at, run)));
        self.run_these(all.collect(), progress)
    }

    /// Runs those that have not run yet, by the numbers of their scenarios and their own.
    fn run_these(
        &mut self,
        runs: Vec<(usize, usize)>,
        progress: &mut dyn FnMut(&StudyProgress<'_>) -> bool,
    ) -> Result<bool, StudyError> {
        let study = self.study;
        for (at, number) in runs {
            if self.outcomes[at][number].is_some() {
                continue;
            }
            let scenario = &study.scenarios[at];
            let values = combination(&scenario.axes, number);
            let (done, all) = self.done();
            let shown = StudyProgress { done, all, scenario: &scenario.name, values };
            if !progress(&shown) {
                return Ok(false);
            }
            let subject = scenario.subject(&shown.values);
            let outcome = subject.and_then(|subject| subject.run());
            self.keep(at, number, outcome.map_err(|error| error.to_string()))?;
        }
        Ok(true)
    }

    fn keep(
        &mut self,
        scenario: usize,
        run: usize,
        outcome: Result<Numbers, String>,
    ) -> Result<(), StudyError> {
        self.journal.add(&Entry::new(scenario, run, &outcome)).map_err(|source| {
            StudyError::Io { doing: "write", path: self.folder.0.join(JOURNAL), source }
        })?;
        self.outcomes[scenario][run] = Some(outcome);
        self.done += 1;
        Ok(())
    }

    /// Checks that the first run of each scenario has the results that the scenario is to show, and that those of the study are
    /// results of one of them. Nothing is known of a run that has failed.
    fn check_figures(&self) -> Result<(), StudyError> {
        let ran = |at: usize| self.outcomes[at].first()?.as_ref()?.as_ref().ok();
        let firsts: Vec<&Numbers> = (0..self.outcomes.len()).filter_map(ran).collect();
        for (at, scenario) in self.study.scenarios.iter().enumerate() {
            let Some(wanted) = &scenario.figures else { continue };
            let known: Vec<&Numbers> = match wanted.own {
                true => ran(at).into_iter().collect(),
                false if firsts.len() < self.outcomes.len() => continue,
                false => firsts.clone(),
            };
            let is_missing = |name: &&String| known.iter().all(|it| !it.0.contains_key(*name));
            if let Some(name) = wanted.values.iter().find(is_missing).filter(|_| !known.is_empty())
            {
                return Err(self.no_figure(wanted, name, &known));
            }
        }
        Ok(())
    }

    fn no_figure(&self, wanted: &Wanted, name: &str, numbers: &[&Numbers]) -> StudyError {
        let mut known: Vec<&str> =
            numbers.iter().flat_map(|numbers| numbers.0.keys()).map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        let Wrong { line, reason } = Wrong::unknown(wanted.line, "result", name, &known);
        StudyError::Line { path: self.study.path.clone(), line, reason }
    }

    /// What became of each scenario.
    pub fn summaries(&self) -> Vec<ScenarioSummary> {
        let scenarios = self.study.scenarios.iter().zip(&self.outcomes);
        scenarios.map(|(scenario, outcomes)| scenario.summary(outcomes)).collect()
    }

    /// Writes tables, plots and the page of a study whose runs have ended. Returns the names of all files in the folder.
    ///
    /// # Errors
    /// [`StudyError::Io`].
    pub fn finish(self) -> Result<Vec<String>, StudyError> {
        let summaries = self.summaries();
        let mut names: Vec<String> =
            self.study.inputs()?.into_iter().map(|input| input.name).collect();
        for (name, text) in page::files(self.study, &summaries, &names) {
            self.folder.write(&name, text.as_bytes())?;
            names.push(name);
        }
        self.folder.close()?;
        names.sort_unstable();
        Ok(names)
    }
}

impl StudyScenario {
    fn summary(&self, outcomes: &[Option<Result<Numbers, String>>]) -> ScenarioSummary {
        let mut sweep = self.sweep();
        let ended = outcomes.iter().enumerate();
        let ended = ended.filter_map(|(number, outcome)| Some((number, outcome.clone()?)));
        sweep.points = ended
            .map(|(number, outcome)| Point { values: combination(&self.axes, number), outcome })
            .collect();
        let has = |name: &str| sweep.points.iter().any(|point| point.result(name).is_some());
        let figures: Vec<String> = match &self.figures {
            Some(wanted) => wanted.values.clone(),
            None => self.subject_figures(),
        };
        let figures: Vec<String> = figures.into_iter().filter(|name| has(name)).collect();
        let errors = sweep.points.iter().filter_map(|point| point.outcome.as_ref().err());
        let (failed, error) = (errors.clone().count(), errors.clone().next().cloned());
        let spread = |name: &String| {
            sweep.means(name).iter().any(|mean| mean.interval.is_some_and(|it| it.0 < it.1))
        };
        let seeds =
            self.axes.iter().any(|axis| axis.key == crate::simulate::SEED && axis.values.len() > 1);
        let seeds_are_equal = seeds && !figures.is_empty() && !figures.iter().any(spread);
        ScenarioSummary { name: self.name.clone(), sweep, figures, failed, error, seeds_are_equal }
    }

    /// Results that are shown if the study names none: those of the first run.
    fn subject_figures(&self) -> Vec<String> {
        let first = self.subject(&combination(&self.axes, 0));
        let first = first.unwrap_or_else(|_| self.base.copy());
        first.figures().iter().map(|name| (*name).to_owned()).collect()
    }
}
