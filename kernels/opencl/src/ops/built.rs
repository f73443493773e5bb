//! Programs that are built.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::programs::Text;
use crate::error::OpenClError;
use crate::program::{Origin, ProgramCache};
use crate::session::{Kernel, Program, Session};

/// A program with the kernels that were used.
#[derive(Debug)]
pub(super) struct Built {
    text: Text,
    program: Program,
    origin: Origin,
    kernels: BTreeMap<&'static str, Kernel>,
    session: Arc<Session>,
}

impl Built {
    /// Builds a program.
    pub(super) fn new(
        session: &Arc<Session>,
        cache: &ProgramCache,
        text: Text,
    ) -> Result<Built, OpenClError> {
        let (program, origin) = cache.build(session, &text.source())?;
        let session = Arc::clone(session);
        Ok(Built { text, program, origin, kernels: BTreeMap::new(), session })
    }

    /// A kernel of the program.
    pub(super) fn kernel(&mut self, name: &'static str) -> Result<&mut Kernel, OpenClError> {
        if !self.kernels.contains_key(name) {
            let kernel = self.take(name)?;
            self.kernels.insert(name, kernel);
        }
        Ok(self.kernels.get_mut(name).expect("it was inserted"))
    }

    /// A kernel of the program, for another owner.
    pub(super) fn take(&self, name: &'static str) -> Result<Kernel, OpenClError> {
        self.session.kernel(&self.program, name)
    }

    /// Why its file in the folder was not used, if there was one.
    pub(super) fn refused(&self) -> Option<String> {
        let Origin::Refused(reason) = &self.origin else { return None };
        Some(format!("the compiled program '{}' was not used: {reason}", self.text.source().name))
    }

    /// Writes it to the folder, unless it came from there.
    pub(super) fn save(&self, cache: &ProgramCache) {
        if self.origin != Origin::Cache {
            cache.save(&self.session, &self.text.source(), &self.program);
        }
    }
}
