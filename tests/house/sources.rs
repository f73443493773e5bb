//! The Rust files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders with sources.
const FOLDERS: [&str; 13] = [
    "src", "engine", "lab", "serve", "cli", "cluster", "kernels", "plan", "actors", "traces",
    "tests", "examples", "benches",
];

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The text of a file, by its path from the root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Whether a file belongs to tests, examples or benches.
pub(crate) fn is_test(path: &str) -> bool {
    path.split('/').any(|part| {
        let name = part.trim_end_matches(".rs");
        name.ends_with("tests") || ["examples", "benches"].contains(&name)
    })
}

/// All sources, by their paths from the root.
pub(crate) fn sources() -> Vec<String> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        add(&root().join(folder), &mut found);
    }
    found.sort();
    assert!(found.len() > 500, "only {} sources", found.len());
    found
}

fn add(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                add(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let path = path.strip_prefix(root()).expect("below the root");
            found.push(path.to_str().expect("UTF-8").replace('\\', "/"));
        }
    }
}
