//! Other engines: which exist, how to run them, and how to read their output.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::measure::Test;
use crate::cli::child::{self, ChildError};
use crate::cli::failure::Failure;

mod llama_cpp;
mod openvino;

/// An engine to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    kind: PeerKind,
    program: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerKind {
    LlamaCpp,
    OpenVino,
}

/// The tests that a process runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) model: &'a Path,
    pub(super) threads: usize,
    pub(super) tests: &'a [Test],
    /// Whether each test has a warm-up run.
    pub(super) warm_up: bool,
}

/// The results of a process.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) version: String,
    /// Speed of each test, in tokens per second, in the order of the tests.
    pub(super) speeds: Vec<f64>,
}

impl PeerKind {
    const ALL: [PeerKind; 2] = [PeerKind::LlamaCpp, PeerKind::OpenVino];

    fn name(self) -> &'static str {
        match self {
            PeerKind::LlamaCpp => "llama.cpp",
            PeerKind::OpenVino => "openvino",
        }
    }

    /// Default program.
    fn program(self) -> &'static str {
        match self {
            PeerKind::LlamaCpp => llama_cpp::PROGRAM,
            PeerKind::OpenVino => openvino::PROGRAM,
        }
    }

    /// How to install it.
    fn install(self) -> &'static str {
        match self {
            PeerKind::LlamaCpp => llama_cpp::INSTALL,
            PeerKind::OpenVino => openvino::INSTALL,
        }
    }
}

/// A peer that is given more than once: reports identify engines by their kind.
pub(super) fn twice(peers: &[Peer]) -> Option<&Peer> {
    let mut later = peers.iter().enumerate();
    later.find(|(at, peer)| peers[..*at].iter().any(|p| p.kind == peer.kind)).map(|(_, peer)| peer)
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Peer, String> {
        let (name, program) = match text.split_once('=') {
            Some((_, "")) => return Err("no program after '='".to_owned()),
            Some((name, program)) => (name, Some(program)),
            None => (text, None),
        };
        let kind = PeerKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| {
            let names = PeerKind::ALL.map(PeerKind::name).join(", ");
            format!("unknown engine '{name}' (expected {names}, as NAME or NAME=PROGRAM)")
        })?;
        Ok(Peer { kind, program: program.unwrap_or(kind.program()).into() })
    }
}

impl Peer {
    /// Name in reports.
    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Starts it without measuring, to fail before any measurement.
    pub(super) async fn check(&self) -> Result<(), Failure> {
        let args = match self.kind {
            PeerKind::LlamaCpp => llama_cpp::probe(),
            PeerKind::OpenVino => openvino::probe(),
        };
        let name = self.name();
        child::run(&self.program, &args).await.map(drop).map_err(|error| {
            let install = self.kind.install();
            let hint =
                format!("{install}, or give the program: --vs {name}=PROGRAM (docs/benchmarks.md)");
            Failure::failed(format!("{name} was not found: {error}")).hint(hint)
        })
    }

    /// Measures, in a process of its own.
    pub(super) async fn measure(&self, job: Job<'_>) -> Result<(Answer, child::Ended), Failure> {
        let args = match self.kind {
            PeerKind::LlamaCpp => llama_cpp::args(job),
            PeerKind::OpenVino => openvino::args(job),
        };
        let failed = |error: ChildError| Failure::failed(format!("{}: {error}", self.name()));
        let ended = child::run(&self.program, &args).await.map_err(failed)?;
        let answer = match self.kind {
            PeerKind::LlamaCpp => llama_cpp::answer(&ended.stdout, job.tests),
            PeerKind::OpenVino => openvino::answer(&ended.stdout, job.tests),
        };
        let answer = answer.map_err(|why| {
            let program = self.program.display();
            Failure::failed(format!("{}: unexpected output of '{program}': {why}", self.name()))
                .hint("docs/benchmarks.md lists the versions that are known to work")
        })?;
        Ok((answer, ended))
    }
}

/// `1,2,3`, without duplicates; `0` if empty.
pub(super) fn list_or_zero(values: impl Iterator<Item = usize>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for value in values.map(|value| value.to_string()) {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    if seen.is_empty() { "0".to_owned() } else { seen.join(",") }
}

/// Why output is not the expected JSON, and how it begins.
fn unreadable(stdout: &[u8], error: &dyn std::fmt::Display) -> String {
    const SHOWN: usize = 120;
    let text = String::from_utf8_lossy(stdout);
    match text.trim() {
        "" => "nothing".to_owned(),
        text => {
            let begin: String = text.chars().take(SHOWN).collect();
            format!("{error}: {begin}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_parsed_by_name() {
        let peer = |text: &str| text.parse::<Peer>();
        let llama = peer("llama.cpp").expect("known");
        assert_eq!((llama.name(), &*llama.program), ("llama.cpp", Path::new("llama-bench")));
        let named = peer("openvino=/venv/bin/python=3").expect("known");
        assert_eq!((named.name(), &*named.program), ("openvino", Path::new("/venv/bin/python=3")));
        for wrong in ["", "llama", "=x", "llama.cpp=", "mnn"] {
            assert!(peer(wrong).is_err(), "{wrong}");
        }
        assert!(peer("mnn").is_err_and(|error| error.contains("expected llama.cpp, openvino")));
    }
}
