//! Drivers that are listed in a process of their own.
//!
//! A driver is a library of somebody else: it may abort, crash or hang while its devices are listed, and with it the
//! program. A [`Lister`] has another process load it first, and names a driver that fails. [`EngineBuilder::lister`] has this
//! done before an engine opens the drivers of its devices.
//!
//! ```no_run
//! use lapwing::drivers::{DriverKind, Lister};
//!
//! let lister = Lister::new("lapwing");
//! for fault in lister.list(&DriverKind::OpenCl).faults {
//!     println!("{fault}");
//! }
//! ```
//!
//! [`EngineBuilder::lister`]: crate::EngineBuilder::lister

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

mod child;
pub(crate) mod fault;
mod vendors;

use crate::devices::DeviceSpec;
use crate::error::Error;
pub use fault::DriverFault;
use vendors::Vendors;

/// Time in seconds that a driver may take to list its devices.
const SECONDS: u32 = 20;

/// Drivers that are listed together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverKind {
    /// All drivers of OpenCL.
    OpenCl,
    /// Every device of OpenVINO.
    OpenVino,
    /// One device of OpenVINO, by its name there; empty for its NPU, or its CPU where there is none.
    OpenVinoDevice(String),
    /// QNN, from this library if there is a path.
    Qnn(Option<PathBuf>),
}

impl DriverKind {
    /// What `lapwing list-drivers` calls them.
    pub fn name(&self) -> &'static str {
        match self {
            DriverKind::OpenCl => "opencl",
            DriverKind::OpenVino | DriverKind::OpenVinoDevice(_) => "openvino",
            DriverKind::Qnn(_) => "qnn",
        }
    }

    /// The library that is loaded, as far as it is known, in words.
    fn library(&self) -> String {
        let path: Option<PathBuf> = match self {
            DriverKind::OpenCl => std::env::var_os("OPENCL_DYLIB_PATH").map(PathBuf::from),
            #[cfg(feature = "openvino")]
            DriverKind::OpenVino | DriverKind::OpenVinoDevice(_) => {
                lapwing_kernels::npu::openvino_library().ok()
            }
            DriverKind::Qnn(Some(path)) => Some(path.clone()),
            #[cfg(feature = "qnn")]
            DriverKind::Qnn(None) => lapwing_kernels::npu::qnn_library().ok(),
            #[cfg(not(all(feature = "openvino", feature = "qnn")))]
            _ => None,
        };
        let name = match self {
            DriverKind::OpenCl => "OpenCL",
            DriverKind::OpenVino | DriverKind::OpenVinoDevice(_) => "OpenVINO",
            DriverKind::Qnn(_) => "QNN",
        };
        path.map_or_else(
            || format!("the {name} library of the system"),
            |path| format!("the {name} library {}", path.display()),
        )
    }
}

/// What drivers have listed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Listed {
    /// The answer of the drivers that did not fail, as `lapwing list-drivers` writes it: `{"devices": […]}`, or
    /// `{"error": "…"}`. `None` if there is none.
    pub answer: Option<serde_json::Value>,
    /// The drivers that failed.
    pub faults: Vec<DriverFault>,
}

/// Has another process list drivers, and names those that fail.
#[derive(Clone, Debug)]
pub struct Lister {
    program: PathBuf,
    seconds: u32,
    state: Arc<Mutex<State>>,
}

/// What a lister has found out.
#[derive(Debug, Default)]
struct State {
    /// Drivers that have been listed, and the first fault.
    checked: Vec<(DriverKind, Option<DriverFault>)>,
    /// The drivers of OpenCL that can be listed, if others cannot.
    usable: Option<Arc<Vendors>>,
}

impl Lister {
    /// A lister whose processes run this program: the path of the `lapwing` program of this version, or its name if it is on
    /// the PATH.
    pub fn new(program: impl Into<PathBuf>) -> Lister {
        Lister { program: program.into(), seconds: SECONDS, state: Arc::default() }
    }

    /// Time in seconds that a driver may take to list its devices; by default 20. The clock is that of Unix; other systems
    /// wait without a limit.
    #[must_use]
    pub fn within(mut self, seconds: u32) -> Lister {
        self.seconds = seconds.max(1);
        self
    }

    /// Lists the devices of these drivers. If a driver of OpenCL fails, each is listed alone to find out which, and the
    /// others answer together; OpenVINO, which loads the drivers of OpenCL, too, then does without the one that failed.
    pub fn list(&self, kind: &DriverKind) -> Listed {
        let usable = self.state().usable.clone().filter(|_| *kind != DriverKind::OpenCl);
        match self.call(kind, usable.as_deref()) {
            Ok(answer) => Listed { answer: Some(answer), faults: Vec::new() },
            Err(fault) if *kind == DriverKind::OpenCl => self.others(kind, fault),
            Err(fault) => Listed { answer: None, faults: vec![fault] },
        }
    }

    /// Finds out which drivers of OpenCL fail, after all of them together have, and has the others list their devices.
    fn others(&self, kind: &DriverKind, together: DriverFault) -> Listed {
        let whole = |fault| Listed { answer: None, faults: vec![fault] };
        let alone = |vendors: std::io::Result<Vendors>| {
            let vendors = vendors.map_err(|error| child::not_started(kind, &error))?;
            self.call(kind, Some(&vendors)).map(|answer| (answer, vendors))
        };
        // The library itself fails, without any driver that a file names.
        if let Err(fault) = alone(Vendors::of([])) {
            return whole(fault);
        }
        let all = vendors::all();
        let (mut good, mut faults) = (Vec::new(), Vec::new());
        for vendor in &all {
            match alone(Vendors::of([vendor])) {
                Ok(_) => good.push(vendor),
                Err(fault) => {
                    let driver = vendor.to_string();
                    faults.push(DriverFault { driver, is_of_file: true, ..fault });
                }
            }
        }
        if faults.is_empty() {
            return whole(together);
        }
        match alone(Vendors::of(good)) {
            Ok((answer, vendors)) => {
                self.state().usable = Some(Arc::new(vendors));
                Listed { answer: Some(answer), faults }
            }
            Err(fault) => {
                faults.push(fault);
                Listed { answer: None, faults }
            }
        }
    }

    fn call(
        &self,
        kind: &DriverKind,
        vendors: Option<&Vendors>,
    ) -> Result<serde_json::Value, DriverFault> {
        let mut variables: Vec<(&str, Option<OsString>)> = Vec::new();
        if let Some(vendors) = vendors {
            variables.extend(vendors.variables());
        }
        if let DriverKind::Qnn(Some(path)) = kind {
            variables.push(("LAPWING_QNN", Some(path.into())));
        }
        child::list(&self.program, self.seconds, kind, variables)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the drivers that these devices need, unless that has been done.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn check<'a>(
        &self,
        devices: impl Iterator<Item = &'a DeviceSpec>,
    ) -> Result<(), Error> {
        for kind in devices.filter_map(DeviceSpec::drivers) {
            let known = self.state().checked.iter().find(|(known, _)| *known == kind).cloned();
            let (_, fault) = known.unwrap_or_else(|| {
                let checked = (kind.clone(), self.list(&kind).faults.into_iter().next());
                self.state().checked.push(checked.clone());
                checked
            });
            fault.map_or(Ok(()), Err)?;
        }
        Ok(())
    }
}
