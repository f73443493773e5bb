//! Programs that tests have compiled.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;

use crate::discovery::find;
use crate::ops::{KernelSpec, Kernels};
use crate::program::ProgramCache;
use crate::session::Session;

/// Whether the driver keeps compiled kernels itself, as PoCL does, and would compile each once more for a folder.
pub(crate) fn driver_keeps_kernels() -> bool {
    find("").expect("an OpenCL device").platform == "Portable Computing Language"
}

/// The folder that serves all tests, so that each program is compiled once: LAPWING_TEST_PROGRAMS names it.
pub(crate) fn programs_of_all() -> Option<PathBuf> {
    let folder = std::env::var_os("LAPWING_TEST_PROGRAMS")?;
    (!driver_keeps_kernels()).then(|| folder.into())
}

/// Kernels whose programs are written to a folder when the test ends.
pub(super) struct Kept {
    kernels: Kernels,
    programs: ProgramCache,
}

impl Kept {
    pub(super) fn new(session: &Arc<Session>, spec: &KernelSpec) -> Kept {
        let programs = ProgramCache::new(programs_of_all());
        let kernels = Kernels::new(session, &programs, spec).expect("kernels");
        Kept { kernels, programs }
    }
}

impl Deref for Kept {
    type Target = Kernels;

    fn deref(&self) -> &Kernels {
        &self.kernels
    }
}

impl DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Kernels {
        &mut self.kernels
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.kernels.save(&self.programs);
    }
}
