//! Plans that are solved ahead of the first prompt: routes as data, which can be stored and checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::moment::Candidate;
use crate::phase::Phase;
use crate::profile::file_name;
use crate::route::Route;
use crate::strategy::{PlanInput, Strategy};

mod stored;

use stored::StoredRoute;

/// Version of the format.
const VERSION: u32 = 2;

/// What plans depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlansSubject {
    /// Version of the program; another version has other strategies.
    pub program: String,
    /// The model.
    pub model: String,
    /// Machine, devices, strategy and its options.
    pub settings: String,
    /// Checksum of the profile; `None` if times are predicted without one.
    pub profile: Option<u32>,
}

impl PlansSubject {
    /// A file name of letters, digits, `.`, `-` and `_`. It does not depend on the program and the profile, so that stale plans
    /// are found, refused and solved again.
    pub fn file_name(&self) -> String {
        file_name(&self.model, &self.settings)
    }
}

/// The chunks of some prompts, and the routes that these chunks and some decode steps may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plans {
    version: u32,
    subject: PlansSubject,
    cuts: Vec<Cut>,
    /// Those of a shape in order: first the one for a chunk alone.
    routes: Vec<StoredRoute>,
}

/// Why stored plans cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlansError {
    /// The file cannot be read or written.
    #[error("plans {}: {source}; solve them with `lapwing prepare`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The text is not a file of plans of this version.
    #[error("plans {}: {source}; solve them again with `lapwing prepare`", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: serde_json::Error,
    },
    /// The plans are for another program, model, profile or other settings.
    #[error("the plans are for another {what}; solve them again with `lapwing prepare`")]
    Mismatch {
        /// What differs.
        what: &'static str,
    },
}

/// Rows of the next chunk of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Cut {
    prompt: usize,
    remaining: usize,
    rows: usize,
}

impl Plans {
    /// No plans yet.
    pub fn new(subject: PlansSubject) -> Plans {
        Plans { version: VERSION, subject, cuts: Vec::new(), routes: Vec::new() }
    }

    /// Number of routes.
    pub fn routes(&self) -> usize {
        self.routes.len()
    }

    /// Checks that the plans depend on this.
    ///
    /// # Errors
    /// [`PlansError::Mismatch`] with what differs.
    pub fn check_subject(&self, here: &PlansSubject) -> Result<(), PlansError> {
        let PlansSubject { program, model, settings, profile } = &self.subject;
        let differs = [
            ("version of the program", *program != here.program),
            ("model", *model != here.model),
            (
                "machine, or for other devices, another strategy or other options",
                *settings != here.settings,
            ),
            ("profile", *profile != here.profile),
        ];
        match differs.into_iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((what, _)) => Err(PlansError::Mismatch { what }),
        }
    }

    /// Adds a prompt of that many rows, and returns the routes of its chunks. What is there already is not solved again.
    ///
    /// # Errors
    /// [`PlanError`] if the strategy has no route.
    pub fn add_prompt(
        &mut self,
        strategy: &dyn Strategy,
        input: &PlanInput<'_>,
        prompt: usize,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        let mut routes = Vec::new();
        let (mut remaining, mut context) = (prompt, 0);
        while remaining > 0 {
            let most = remaining.min(input.chunk_rows).max(1);
            let at = PromptRows { all: prompt, remaining };
            let rows = self.chunk_rows(at).unwrap_or_else(|| {
                let rows = strategy.chunk_rows(input, at);
                self.cuts.push(Cut { prompt, remaining, rows });
                rows
            });
            let rows = rows.clamp(1, most);
            remaining -= rows;
            let (phase, selected) = (Phase::Prefill, usize::from(remaining == 0));
            let shape = ChunkShape { phase, rows, selected, context, prompt };
            routes.push(self.add(strategy, input, &shape)?);
            context += rows;
        }
        Ok(routes)
    }

    /// Adds the routes that a chunk of this shape may take, with its context rounded up, and returns the first one. They are not solved
    /// again if they are there already.
    ///
    /// # Errors
    /// [`PlanError`] if the strategy has no route.
    pub fn add(
        &mut self,
        strategy: &dyn Strategy,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Arc<Route>, PlanError> {
        let shape = shape.rounded();
        if let Some(known) = self.route(input, &shape) {
            return Ok(known);
        }
        let routes = strategy.routes(input, &shape)?;
        let candidates = Candidate::of_routes(input, &shape, routes);
        self.routes.retain(|stored| !stored.is_of(&shape));
        let stored = candidates.iter().map(|it| StoredRoute::new(&it.route, &shape));
        self.routes.extend(stored);
        let first = candidates.into_iter().next().map(|candidate| candidate.route);
        first.ok_or(PlanError::Coverage { found: 0..0, expected: input.graph.nodes().len() })
    }

    /// All routes that can run, those of prompts first.
    pub fn all(&self, input: &PlanInput<'_>) -> Vec<Arc<Route>> {
        let route = |stored: &StoredRoute| stored.route(input, &stored.shape()?).ok();
        self.routes.iter().filter_map(route).collect()
    }

    fn chunk_rows(&self, prompt: PromptRows) -> Option<usize> {
        let PromptRows { all, remaining } = prompt;
        let cut = self.cuts.iter().find(|cut| (cut.prompt, cut.remaining) == (all, remaining));
        cut.map(|cut| cut.rows)
    }

    /// The route of a shape; `None` if there is none, or one that cannot run.
    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Option<Arc<Route>> {
        self.routes.iter().find(|stored| stored.is_of(shape))?.route(input, shape).ok()
    }

    /// All routes of a shape; empty if there is none, or if one of them cannot run.
    fn routes_of(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Vec<Arc<Route>> {
        let stored = self.routes.iter().filter(|stored| stored.is_of(shape));
        let routes: Result<_, _> = stored.map(|stored| stored.route(input, shape)).collect();
        routes.unwrap_or_default()
    }

    /// The plans as JSON, as [`load`](Plans::load) reads them.
    ///
    /// # Errors
    /// None in practice: JSON can express every value.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Reads plans from a file.
    ///
    /// # Errors
    /// [`PlansError`] when the file cannot be read, or has another format.
    pub fn load(path: &Path) -> Result<Plans, PlansError> {
        let file = |source| PlansError::File { path: path.to_owned(), source };
        let format = |source| PlansError::Format { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(file)?;
        let plans: Plans = serde_json::from_str(&text).map_err(format)?;
        match plans.version {
            VERSION => Ok(plans),
            _ => Err(PlansError::Mismatch { what: "version of the program" }),
        }
    }
}

/// A strategy whose routes come from plans where these have them, and are solved otherwise.
#[derive(Clone)]
pub struct Planned {
    /// Solves what the plans lack.
    pub inner: Arc<dyn Strategy>,
    /// The plans.
    pub plans: Arc<Plans>,
}

impl Strategy for Planned {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        self.plans.chunk_rows(prompt).unwrap_or_else(|| self.inner.chunk_rows(input, prompt))
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        self.plans.route(input, shape).map_or_else(|| self.inner.route(input, shape), Ok)
    }

    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        match self.plans.routes_of(input, shape) {
            none if none.is_empty() => self.inner.routes(input, shape),
            routes => Ok(routes),
        }
    }
}
