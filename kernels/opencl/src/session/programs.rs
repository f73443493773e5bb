//! Programs and their kernels.

use std::ffi::CString;
use std::ptr::null_mut;

use cl3::{kernel, program};

use super::{Handle, Kernel, Program, Session};
use crate::error::OpenClError;
use lapwing_model::signals;

impl Session {
    /// Compiles a program from source; the error of a build has the start of the compiler's log.
    pub(crate) fn program_of_source(
        &self,
        source: &str,
        name: &str,
        options: &str,
    ) -> Result<Program, OpenClError> {
        let object = program::create_program_with_source(self.context.object, &[source])
            .map_err(|code| self.error("clCreateProgramWithSource", code))?;
        self.built(Program(Handle { object, release: program::release_program }), name, options)
    }

    /// As [`program_of_source`](Session::program_of_source), from a binary.
    pub(crate) fn program_of_binary(
        &self,
        binary: &[u8],
        name: &str,
        options: &str,
    ) -> Result<Program, OpenClError> {
        let device = self.info.id.handle();
        // SAFETY: the device is the context's.
        let object = unsafe {
            program::create_program_with_binary(self.context.object, &[device], &[binary])
        };
        let object = object.map_err(|code| self.error("clCreateProgramWithBinary", code))?;
        self.built(Program(Handle { object, release: program::release_program }), name, options)
    }

    fn built(&self, program: Program, name: &str, options: &str) -> Result<Program, OpenClError> {
        const LOG_MAX: usize = 2000;
        let device = self.info.id.handle();
        let options = CString::new(options).unwrap_or_default();
        let built = signals::keep(|| {
            program::build_program(program.0.object, &[device], &options, None, null_mut())
        });
        let Err(code) = built else { return Ok(program) };
        let log = program::CL_PROGRAM_BUILD_LOG;
        let log = program::get_program_build_info(program.0.object, device, log);
        let mut log = log.map(String::from).unwrap_or_default().trim().to_owned();
        if log.is_empty() {
            log = format!("(empty; {} {code})", cl3::error_codes::error_text(code));
        }
        let end = log.char_indices().map(|(at, _)| at).take_while(|at| *at <= LOG_MAX).last();
        log.truncate(if log.len() > LOG_MAX { end.unwrap_or(0) } else { log.len() });
        Err(OpenClError::Build { device: self.info.name.clone(), program: name.to_owned(), log })
    }

    /// The binary of a built program.
    pub(crate) fn binary(&self, program: &Program) -> Option<Vec<u8>> {
        let binaries = program::get_program_info(program.0.object, program::CL_PROGRAM_BINARIES);
        let binary = Vec::<Vec<u8>>::from(binaries.ok()?).into_iter().next()?;
        (!binary.is_empty()).then_some(binary)
    }

    /// A kernel of a built program.
    pub(crate) fn kernel(
        &self,
        program: &Program,
        name: &'static str,
    ) -> Result<Kernel, OpenClError> {
        let text = CString::new(name).unwrap_or_default();
        let object = kernel::create_kernel(program.0.object, &text)
            .map_err(|code| self.error("clCreateKernel", code))?;
        let kernel = Handle { object, release: kernel::release_kernel };
        let group = kernel::CL_KERNEL_WORK_GROUP_SIZE;
        let device = self.info.id.handle();
        let group_max = kernel::get_kernel_work_group_info(object, device, group);
        let group_max = group_max.map(usize::from).unwrap_or(1);
        Ok(Kernel { kernel, group_max })
    }
}
