//! llama.cpp on the same file.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Failure;
use crate::passes::median;

/// Runs of each size.
const RUNS: usize = 5;

/// Median seconds of llama-bench's prompts of these numbers of tokens after a context.
pub(crate) fn medians(
    program: &Path,
    file: &Path,
    rows: &[usize],
    threads: usize,
    context: usize,
) -> Result<Vec<f64>, Failure> {
    let sizes: Vec<String> = rows.iter().map(usize::to_string).collect();
    let mut command = Command::new(program);
    if let Some(folder) = program.parent() {
        command.env("LD_LIBRARY_PATH", folder);
    }
    command.args(["-n", "0", "-fa", "1", "-o", "json", "-p", &sizes.join(",")]);
    command.args(["-t", &threads.to_string(), "-r", &RUNS.to_string(), "-d", &context.to_string()]);
    let output = command.arg("-m").arg(file).output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed: {}", program.display(), text.trim()).into());
    }
    let tests: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let seconds = |rows: &usize| {
        let of_size = |test: &&Value| test["n_prompt"].as_u64() == Some(*rows as u64);
        let samples = tests.iter().find(of_size).and_then(|test| test["samples_ns"].as_array());
        let samples = samples.ok_or_else(|| format!("no result for {rows} tokens"))?;
        Ok(median(samples.iter().filter_map(Value::as_f64)) * 1e-9)
    };
    rows.iter().map(seconds).collect()
}
