//! `lapwing convert`: writes a model file older than GGUF, or a GGUF file, as one GGUF file, with matrices
//! requantised on request.

mod requantised;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::HumanBytes;
use lapwing_engine::Requant;
use lapwing_kernels::weights::legacy::{LegacyError, LegacyFile, LegacyOptions};
use lapwing_kernels::weights::{GgufWriter, WeightFile, WeightTensor, WriteError};
use lapwing_traces::whole_file;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::files::parent;
use crate::cli::output::{print, print_json};
use crate::cli::requant::RequantReport;
use crate::cli::session::Session;
use requantised::{ConvertError, Requantised};

const EXAMPLES: &str = "\
Examples:
  lapwing convert ggml-model-q4_0.bin model.gguf
  lapwing convert llama-2.ggmlv3.q8_0.bin model.gguf --rms-eps 1e-5 --train-ctx 4096
  lapwing convert model-00001-of-00003.gguf model.gguf     joins the parts of a model
  lapwing convert model-f16.gguf model-int4.gguf --requant int4:128:min
  lapwing convert model-f16.gguf model-q4_k.gguf --requant q4_k
  lapwing convert ggml-model-q4_0.bin.1 model.gguf         any part, the others beside it

OLD is a llama model in GGML, GGMF v1, or GGJT v1, v2 or v3, with weights in F32, F16, Q4_0, Q4_1 or
Q8_0 (from v2 on also Q5_0 and Q5_1, in v3 also Q4_K, Q5_K and Q6_K), or a GGUF file. Weights keep
their values, except that scales which older versions store in 32 bits are rounded to 16, and except
for the matrices that --requant requantises: NEW then computes what OLD computes with --requant.

NEW is complete or not written at all; an existing file is replaced only with --force.

With --json:
  {\"old\":\"…\",\"new\":\"…\",\"from\":\"GGJT v1\",\"bytes\":N,
   \"formats\":[{\"format\":\"Q4_0\",\"tensors\":N,\"copied\":true|false}],
   \"requant\":{…}|null}
  copied: the blocks are the same in OLD and NEW.";

/// Options of `convert`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file to convert
    old: PathBuf,

    /// The GGUF file to write
    new: PathBuf,

    /// Replace NEW if it exists
    #[arg(long)]
    force: bool,

    /// Requantise the matrices of matmuls that have more bits per weight to this form, as in q4_0 or
    /// int4:128:min; `lapwing run --help` lists the forms [default: keep all weights]
    #[arg(long, value_name = "FORM")]
    requant: Option<Requant>,

    /// Epsilon of the norms, which files older than GGUF do not store: 1e-6 for LLaMA, 1e-5 for Llama 2
    #[arg(long, value_name = "EPS", default_value_t = LegacyOptions::default().rms_eps)]
    rms_eps: f32,

    /// Training context, which files older than GGUF do not store: 2048 for LLaMA, 4096 for Llama 2
    #[arg(long, value_name = "TOKENS", default_value_t = LegacyOptions::default().context)]
    train_ctx: u32,
}

#[derive(Debug, Serialize)]
struct Report {
    old: PathBuf,
    new: PathBuf,
    from: String,
    bytes: u64,
    formats: Vec<Format>,
    requant: Option<RequantReport>,
}

#[derive(Debug, Serialize)]
struct Format {
    format: String,
    tensors: usize,
    copied: bool,
}

/// The open file to convert.
enum Old {
    Legacy(LegacyFile, LegacyOptions),
    Gguf(WeightFile, Option<Requantised>),
}

/// Converts a file.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let claim = session.interrupts.claim();
    let mut work = tokio::task::spawn_blocking(move || convert(&args, &stopped));
    let report = tokio::select! {
        report = &mut work => report,
        signal = claim.interrupted() => {
            stop.store(true, Ordering::Relaxed);
            session.restore_after_interrupt();
            // Until the incomplete file is removed.
            let _ = work.await;
            return Err(Failure::Interrupted(signal));
        }
    };
    let report = report.map_err(|error| Failure::failed(format!("cannot convert: {error}")))??;
    if let Some(requant) = &report.requant {
        session.note(&requant.text);
    }
    match session.json {
        true => print_json(&report),
        false => print(&format!(
            "{} → {}: {}, {} tensors\n",
            report.from,
            report.new.display(),
            HumanBytes(report.bytes),
            report.formats.iter().map(|format| format.tensors).sum::<usize>(),
        )),
    }
}

/// Converts a file, unless `stop` is set before the last tensor is written.
fn convert(args: &Args, stop: &AtomicBool) -> Result<Report, Failure> {
    check(args)?;
    let old = open(args)?;
    let writer = old.writer().map_err(|error| of_file(&args.old, &error))?;
    let written: Result<(), ConvertError> = whole_file::write_with(&args.new, |out| {
        writer.write_with(out, |at, out| match stop.load(Ordering::Relaxed) {
            true => Err(WriteError::Io(std::io::ErrorKind::Interrupted.into()).into()),
            false => old.data(at, out),
        })
    });
    written.map_err(|error| {
        Failure::failed(format!(
            "cannot convert {} to {}: {error}",
            args.old.display(),
            args.new.display()
        ))
    })?;
    let bytes = std::fs::metadata(&args.new)
        .map_err(|error| Failure::file("read", &args.new, &error))?
        .len();
    let (old_path, new) = (args.old.clone(), args.new.clone());
    let requant = old.requantised().map(|requantised| RequantReport::of(&requantised.report));
    Ok(Report { old: old_path, new, from: old.format(), bytes, formats: old.formats(), requant })
}

/// Checks the options before a large file is read.
fn check(args: &Args) -> Result<(), Failure> {
    if !(args.rms_eps > 0.0 && args.rms_eps < 1.0) {
        return Err(Failure::usage(format!("--rms-eps {} is not between 0 and 1", args.rms_eps)));
    }
    if args.train_ctx == 0 {
        return Err(Failure::usage("--train-ctx must be at least 1"));
    }
    parent(&args.new)?;
    if args.new.exists() && !args.force {
        return Err(Failure::failed(format!("{} exists", args.new.display()))
            .hint("--force replaces it; or give another name"));
    }
    whole_file::check(&args.new).map_err(|error| Failure::file("write", &args.new, &error))
}

fn open(args: &Args) -> Result<Old, Failure> {
    if LegacyFile::is_legacy(&args.old) {
        if args.requant.is_some() {
            return Err(Failure::usage("--requant needs a GGUF file")
                .hint("convert without --requant first, and then NEW with it"));
        }
        let options = LegacyOptions { rms_eps: args.rms_eps, context: args.train_ctx };
        let file = LegacyFile::open(&args.old).map_err(|e| Failure::failed(e.to_string()))?;
        return Ok(Old::Legacy(file, options));
    }
    let file = WeightFile::open(&args.old).map_err(|e| Failure::failed(e.to_string()))?;
    let requantised = args.requant.map(|form| Requantised::of(&file, form)).transpose()?;
    Ok(Old::Gguf(file, requantised))
}

fn of_file(path: &Path, error: &LegacyError) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

impl Old {
    fn format(&self) -> String {
        match self {
            Old::Legacy(file, _) => file.version().to_string(),
            Old::Gguf(..) => "GGUF".to_owned(),
        }
    }

    fn requantised(&self) -> Option<&Requantised> {
        match self {
            Old::Legacy(..) => None,
            Old::Gguf(_, requantised) => requantised.as_ref(),
        }
    }

    /// The form that a tensor is requantised to.
    fn form_of(&self, tensor: &str) -> Option<Requant> {
        self.requantised()?.form_of(tensor)
    }

    /// Metadata and tensor table of the new file.
    fn writer(&self) -> Result<GgufWriter, LegacyError> {
        let file = match self {
            Old::Legacy(file, options) => return file.to_gguf(options),
            Old::Gguf(file, _) => file,
        };
        let mut writer = GgufWriter::new();
        let replaced = self.requantised().map(|requantised| requantised.meta(file, &mut writer));
        let replaced = replaced.unwrap_or_default();
        let is_kept = |key: &str| !key.starts_with("split.") && !replaced.contains(&key);
        for (key, value) in file.metadata().iter().filter(|(key, _)| is_kept(key)) {
            writer.meta_of(key, value);
        }
        for tensor in file.tensors() {
            let dtype = self.form_of(&tensor.name).map_or(tensor.dtype, Requant::dtype);
            writer.tensor_later(&tensor.name, tensor.shape.dims(), dtype);
        }
        Ok(writer)
    }

    /// Writes the data of a tensor.
    fn data(&self, index: usize, out: &mut dyn Write) -> Result<(), ConvertError> {
        let file = match self {
            Old::Legacy(file, _) => return Ok(file.write_tensor(index, out)?),
            Old::Gguf(file, _) => file,
        };
        let name = file.tensors().nth(index).map(|info| info.name.as_str());
        let Some(tensor) = name.and_then(|name| file.tensor(name)) else { return Ok(()) };
        match self.form_of(&tensor.info().name) {
            Some(form) => Ok(form.write(&tensor, out)?),
            None => copy(&tensor, out),
        }
    }

    /// Number of tensors of each format.
    fn formats(&self) -> Vec<Format> {
        let mut counts: BTreeMap<(String, bool), usize> = BTreeMap::new();
        let mut count = |format: String, copied| *counts.entry((format, copied)).or_default() += 1;
        match self {
            Old::Legacy(file, _) => {
                file.tensors().iter().for_each(|t| count(t.dtype().to_string(), t.is_copied()));
            }
            Old::Gguf(file, _) => file.tensors().for_each(|t| match self.form_of(&t.name) {
                Some(form) => count(form.dtype().to_string(), false),
                None => count(t.dtype.to_string(), true),
            }),
        }
        let format = |((format, copied), tensors)| Format { format, tensors, copied };
        counts.into_iter().map(format).collect()
    }
}

/// Copies the data of a tensor in pieces.
fn copy(tensor: &WeightTensor, out: &mut dyn Write) -> Result<(), ConvertError> {
    const PIECE: usize = 1 << 20;
    let (bytes, mut piece) = (tensor.info().bytes, vec![0; PIECE]);
    for start in (0..bytes).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(bytes - start)];
        let read = tensor.read_range(start, piece);
        read.map_err(|error| WriteError::Io(std::io::Error::other(error)))?;
        out.write_all(piece)?;
    }
    Ok(())
}
