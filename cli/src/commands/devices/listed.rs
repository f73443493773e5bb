//! Devices that drivers list in a process of their own.

use lapwing_engine::drivers::{DriverKind, Lister};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::found::{Failed, Found};
use super::{opencl, openvino, qnn};
use crate::cli::drivers::Request;

/// The answer of a process that lists drivers.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer<T> {
    Devices(Vec<T>),
    Error(String),
}

impl<T: DeserializeOwned> Found<T> {
    /// Has a process list the drivers.
    pub(super) fn by(lister: &Lister, kind: &DriverKind) -> Found<T> {
        let listed = lister.list(kind);
        let failed = listed.faults.into_iter().map(Failed::from).collect();
        let (devices, why_none) = match listed.answer.map(serde_json::from_value) {
            Some(Ok(Answer::Devices(devices))) => (devices, None),
            Some(Ok(Answer::Error(why))) => (Vec::new(), Some(why)),
            Some(Err(error)) => {
                let why = format!("the process that lists drivers gave a wrong answer: {error}");
                (Vec::new(), Some(why))
            }
            None => (Vec::new(), Some("no driver can be used".to_owned())),
        };
        Found { devices, why_none, failed }
    }
}

/// Lists the drivers of a request in this process.
pub(crate) fn list_drivers(request: &Request) -> Value {
    let device = request.device.as_deref();
    match &*request.kind {
        "opencl" => answer(opencl::list()),
        "openvino" => answer(openvino::list(device)),
        "qnn" => answer(qnn::list()),
        other => json!({ "error": format!("there are no drivers of the kind '{other}'") }),
    }
}

fn answer(listed: Result<Vec<impl Serialize>, String>) -> Value {
    match listed {
        Ok(devices) => json!({ "devices": devices }),
        Err(why) => json!({ "error": why }),
    }
}
