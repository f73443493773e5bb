//! OpenVINO GenAI, run by a script in a Python that has it.

use serde::Deserialize;

use super::super::measure::Test;
use super::{Answer, Job, unreadable};

pub(super) const PROGRAM: &str = "python3";
pub(super) const INSTALL: &str =
    "install it with `pip install openvino-genai openvino-tokenizers` in a virtual environment";

const SCRIPT: &str = include_str!("openvino_peer.py");

#[derive(Debug, Deserialize)]
struct Printed {
    version: String,
    results: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    kind: String,
    n: usize,
    depth: usize,
    tokens_per_second: f64,
}

/// Arguments that measure nothing.
pub(super) fn probe() -> Vec<String> {
    ["-c", "import numpy, openvino_genai, openvino_tokenizers"].map(str::to_owned).to_vec()
}

/// Arguments that measure.
pub(super) fn args(job: Job<'_>) -> Vec<String> {
    let name = |test: &Test| format!("{}{}@{}", test.kind.name(), test.tokens, test.depth);
    let tests: Vec<String> = job.tests.iter().map(name).collect();
    vec![
        "-c".to_owned(),
        SCRIPT.to_owned(),
        job.model.display().to_string(),
        job.threads.to_string(),
        tests.join(","),
        usize::from(job.warm_up).to_string(),
    ]
}

/// Reads the output; the last line is the script's.
pub(super) fn answer(stdout: &[u8], tests: &[Test]) -> Result<Answer, String> {
    let text = String::from_utf8_lossy(stdout);
    let line = text.trim().lines().last().unwrap_or_default();
    let Printed { version, results } =
        serde_json::from_str(line).map_err(|error| unreadable(stdout, &error))?;
    let speed = |test: &Test| {
        let entry = results.iter().find(|entry| {
            (&*entry.kind, entry.n, entry.depth) == (test.kind.name(), test.tokens, test.depth)
        });
        let entry = entry.ok_or_else(|| format!("the output has no test {test}"))?;
        match entry.tokens_per_second {
            speed if speed.is_finite() && speed > 0.0 => Ok(speed),
            speed => Err(format!("{test} has an invalid speed: {speed} tokens per second")),
        }
    };
    let speeds = tests.iter().map(speed).collect::<Result<Vec<f64>, String>>()?;
    Ok(Answer { version, speeds })
}

#[cfg(test)]
mod tests {
    use super::super::super::measure::Kind;
    use super::*;

    #[test]
    fn only_the_last_line_is_read() {
        let tests = [Test { kind: Kind::Generate, tokens: 8, depth: 64 }];
        let line =
            r#"{"version":"1","results":[{"kind":"tg","n":8,"depth":64,"tokens_per_second":5.5}]}"#;
        let printed = format!("[INFO] {{loading}}\n{line}\n");
        let expected = Answer { version: "1".to_owned(), speeds: vec![5.5] };
        assert_eq!(answer(printed.as_bytes(), &tests), Ok(expected));
        for wrong in ["", "x", &line.replace("5.5", "-5.5"), &line.replace("tg", "pp")] {
            assert!(answer(wrong.as_bytes(), &tests).is_err(), "{wrong}");
        }
    }
}
