//! What a model needs here, and its JSON form.

use std::time::Duration;

use lapwing_engine::fit::{Fit, MemoryNeed, ModelHeader};
use lapwing_engine::{Error, KvDtype};
use serde::Serialize;

/// A model, and what it needs on each set of devices.
#[derive(Debug, Serialize)]
pub(super) struct FitReport {
    pub(super) model: String,
    pub(super) files: Vec<String>,
    pub(super) bytes: Option<u64>,
    pub(super) architecture: Option<String>,
    pub(super) parameters: Option<u64>,
    pub(super) formats: Vec<FormatBytes>,
    pub(super) supported: bool,
    /// What is missing, if it is not supported.
    pub(super) reason: Option<String>,
    /// One sentence.
    pub(super) verdict: String,
    /// Type of keys and values.
    pub(super) kv: Option<&'static str>,
    pub(super) devices: Vec<OnDevices>,
    /// Models of the repository.
    pub(super) repository: Vec<OtherFile>,
    /// Why they are not known.
    pub(super) repository_unknown: Option<String>,
}

/// Bytes of the tensors of a format.
#[derive(Debug, Serialize)]
pub(super) struct FormatBytes {
    pub(super) format: String,
    pub(super) bytes: u64,
}

/// A model on a set of devices.
#[derive(Debug, Serialize)]
pub(super) struct OnDevices {
    /// As for `--device`.
    pub(super) devices: String,
    /// Why there is no result.
    pub(super) error: Option<String>,
    #[serde(flatten)]
    pub(super) numbers: Numbers,
}

/// The result; all of it is absent after an error.
#[derive(Debug, Default, Serialize)]
pub(super) struct Numbers {
    pub(super) strategy: Option<String>,
    /// Whether it fits with the context.
    pub(super) fits: Option<bool>,
    /// Whether it does not fit, and runs with weights that are read from the disk when they are used.
    pub(super) runs_from_disk: bool,
    pub(super) context: Option<usize>,
    pub(super) trained_context: Option<usize>,
    pub(super) largest_context: Option<usize>,
    pub(super) memory: Vec<MemoryReport>,
    pub(super) prompt_tokens: Option<usize>,
    pub(super) first_token_ms: Option<f64>,
    pub(super) tokens_per_second: Option<f64>,
    pub(super) tokens_per_second_at_context: Option<f64>,
    pub(super) rates: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Bytes of one memory.
#[derive(Debug, Serialize)]
pub(super) struct MemoryReport {
    /// The device whose memory it is; `None` for that of the host.
    pub(super) device: Option<String>,
    pub(super) weights: u64,
    pub(super) kv: u64,
    pub(super) buffers: u64,
    pub(super) needed: u64,
    pub(super) free: Option<u64>,
}

/// A model of the repository.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OtherFile {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) parts: usize,
    pub(super) bytes: Option<u64>,
    /// Whether it is the one whose header was read.
    pub(super) read: bool,
    pub(super) fits: Option<bool>,
    pub(super) tokens_per_second: Option<f64>,
}

impl FitReport {
    /// Of a model that this version cannot run; without a header if that is why.
    pub(super) fn unsupported(
        model: &str,
        header: Option<&ModelHeader>,
        error: &Error,
    ) -> FitReport {
        let reason = error.to_string();
        let verdict = format!("This model does not run here: {reason}");
        let (reason, model) = (Some(reason), model.to_owned());
        match header {
            Some(header) => {
                FitReport { supported: false, reason, verdict, ..FitReport::of(header) }
            }
            None => FitReport {
                model,
                files: Vec::new(),
                bytes: None,
                architecture: None,
                parameters: None,
                formats: Vec::new(),
                supported: false,
                reason,
                verdict,
                kv: None,
                devices: Vec::new(),
                repository: Vec::new(),
                repository_unknown: None,
            },
        }
    }

    /// Of a supported model.
    pub(super) fn new(
        header: &ModelHeader,
        kv: KvDtype,
        found: Vec<(String, Result<Fit, String>)>,
    ) -> FitReport {
        let best = best(&found).cloned();
        let repository = repository(header, best.as_ref());
        let verdict = match &best {
            Some(fit) => super::text::verdict(header, fit, &repository),
            None => "This model is supported, but none of the devices can be used".to_owned(),
        };
        let devices =
            found.into_iter().map(|(devices, fit)| OnDevices::new(devices, fit)).collect();
        FitReport { verdict, kv: Some(kv.name()), devices, repository, ..FitReport::of(header) }
    }

    fn of(header: &ModelHeader) -> FitReport {
        let format = |(format, bytes)| FormatBytes { format, bytes };
        FitReport {
            model: header.name.clone(),
            files: header.files.clone(),
            bytes: Some(header.bytes),
            architecture: header.architecture().map(str::to_owned),
            parameters: Some(header.parameters()),
            formats: header.formats().into_iter().map(format).collect(),
            supported: true,
            reason: None,
            verdict: String::new(),
            kv: None,
            devices: Vec::new(),
            repository: repository(header, None),
            repository_unknown: header.others_unknown.clone(),
        }
    }
}

/// The fastest set of devices of those on which the model fits, or else of those where that is not known, or else the first.
fn best(found: &[(String, Result<Fit, String>)]) -> Option<&Fit> {
    let rank = |fit: &&Fit| {
        let fits = match fit.fits() {
            Some(true) => 2.0,
            None => 1.0,
            Some(false) if fit.largest_context.is_some_and(|largest| largest > 0) => 0.5,
            Some(false) => 0.0,
        };
        (fits, fit.tokens_per_second().unwrap_or_default())
    };
    let all = found.iter().filter_map(|(_, fit)| fit.as_ref().ok());
    // Of equal ones, the first.
    all.rev().max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal))
}

/// The models of the repository, the smallest first.
fn repository(header: &ModelHeader, fit: Option<&Fit>) -> Vec<OtherFile> {
    let each = header.others.iter().map(|other| {
        let read = other.name == header.name;
        let ratio = other.bytes.map(|bytes| bytes as f64 / header.bytes.max(1) as f64);
        let (fits, speed) = match (fit, read, ratio) {
            (Some(fit), true, _) => (fit.fits(), fit.tokens_per_second()),
            (Some(fit), false, Some(ratio)) if ratio > 0.0 => fit.scaled(ratio),
            _ => (None, None),
        };
        OtherFile {
            file: other.file.clone(),
            name: other.name.clone(),
            parts: other.parts,
            bytes: other.bytes,
            read,
            fits,
            tokens_per_second: speed,
        }
    });
    let mut all: Vec<OtherFile> = each.collect();
    all.sort_by_key(|other| other.bytes);
    all
}

impl OnDevices {
    fn new(devices: String, fit: Result<Fit, String>) -> OnDevices {
        match fit {
            Err(error) => OnDevices { devices, error: Some(error), numbers: Numbers::default() },
            Ok(fit) => OnDevices { devices, error: None, numbers: Numbers::new(fit) },
        }
    }
}

impl Numbers {
    fn new(fit: Fit) -> Numbers {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let memory = |need: &MemoryNeed| MemoryReport {
            device: need.device.clone(),
            weights: need.weights,
            kv: need.kv,
            buffers: need.buffers,
            needed: need.needed(),
            free: need.free,
        };
        Numbers {
            fits: fit.fits(),
            runs_from_disk: fit.runs_from_disk(),
            context: Some(fit.context),
            trained_context: Some(fit.trained_context),
            largest_context: fit.largest_context,
            memory: fit.memory.iter().map(memory).collect(),
            prompt_tokens: Some(fit.speed.prompt),
            first_token_ms: Some(ms(fit.speed.first_token)),
            tokens_per_second: fit.tokens_per_second(),
            tokens_per_second_at_context: fit.tokens_per_second_at_context(),
            strategy: Some(fit.strategy),
            rates: Some(fit.rates),
            notes: fit.notes,
        }
    }
}
