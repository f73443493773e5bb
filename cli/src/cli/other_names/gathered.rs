//! Options that several names set together.

use std::ffi::{OsStr, OsString};

use crate::cli::failure::Failure;

/// Rows of a chunk, if nothing else is said; also the default of llama.cpp.
const CHUNK: usize = 512;

/// What names have said of options that they share.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    repository: Option<OsString>,
    file: Option<OsString>,
    /// Least number so far, or a text that is none.
    chunk: Option<Result<usize, OsString>>,
    kv: Option<&'static str>,
    strategies: Vec<OsString>,
    arguments: Vec<OsString>,
}

impl Gathered {
    pub(super) fn repository(&mut self, name: OsString) {
        self.repository = Some(name);
    }

    pub(super) fn file(&mut self, name: OsString) {
        self.file = Some(name);
    }

    pub(super) fn argument(&mut self, value: OsString) {
        self.arguments.push(value);
    }

    pub(super) fn strategy(&mut self, name: OsString) {
        self.strategies.push(name);
    }

    pub(super) fn chunk(&mut self, rows: OsString) {
        let rows = rows.to_str().and_then(|text| text.parse().ok()).ok_or(rows);
        self.chunk = Some(match (self.chunk.take(), rows) {
            (Some(Ok(before)), Ok(now)) => Ok(before.min(now)),
            (Some(Err(before)), _) => Err(before),
            (_, rows) => rows,
        });
    }

    /// Takes the type of keys or of values, as `said`; both have one type here.
    pub(super) fn kv(&mut self, said: &str, kind: &OsStr) -> Result<(), Failure> {
        let kind = match kind.to_str() {
            Some("f32") => "f32",
            Some("f16") => "f16",
            Some("q8_0" | "int8") => "int8",
            _ => {
                return Err(Failure::instead(format!(
                    "'{said} {}' of llama.cpp: keys and values are f32, f16 or int8, as in --kv int8",
                    kind.display()
                )));
            }
        };
        match self.kv.replace(kind).filter(|before| *before != kind) {
            Some(before) => Err(Failure::instead(format!(
                "'{said}' of llama.cpp: keys and values have one type here: --kv {before} or --kv {kind}"
            ))),
            None => Ok(()),
        }
    }

    /// The options.
    pub(super) fn options(&mut self) -> Result<Vec<OsString>, Failure> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: OsString| words.extend([option.into(), value]);
        match (self.repository.take(), self.file.take()) {
            (Some(repository), Some(file)) => {
                add("--model", hub(&without_quantisation(&repository), Some(&file)));
            }
            (Some(repository), None) => add("--model", hub(&repository, None)),
            (None, Some(_)) => {
                return Err(Failure::instead(
                    "'-hff' of llama.cpp: the repository comes first, as in -m hf:owner/repo/file.gguf",
                ));
            }
            (None, None) => {}
        }
        match self.chunk.take() {
            Some(Ok(CHUNK..)) | None => {}
            Some(Ok(rows)) => add("--chunk", rows.to_string().into()),
            Some(Err(text)) => add("--chunk", text),
        }
        if let Some(kind) = self.kv.take() {
            add("--kv", kind.into());
        }
        if !self.strategies.is_empty() {
            add("--strategy", std::mem::take(&mut self.strategies).join(OsStr::new(",")));
        }
        Ok(words)
    }

    /// The arguments.
    pub(super) fn arguments(&mut self) -> Vec<OsString> {
        std::mem::take(&mut self.arguments)
    }
}

/// The name of a repository, or of its file.
fn hub(repository: &OsStr, file: Option<&OsStr>) -> OsString {
    let mut name = OsString::from("hf:");
    name.push(repository);
    if let Some(file) = file {
        name.push("/");
        name.push(file);
    }
    name
}

fn without_quantisation(repository: &OsStr) -> OsString {
    match repository.to_str().and_then(|text| text.split_once(':')) {
        Some((before, _)) => before.into(),
        None => repository.to_owned(),
    }
}
