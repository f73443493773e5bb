//! Rules of CONTRIBUTING that no lint checks, on the sources themselves.

mod circles;
mod functions;
mod imports;
mod links;
mod modules;
mod sources;

use std::collections::BTreeSet;

use functions::Functions;
use sources::{is_test, read, root, sources};

/// Lines of a file.
const LINES: usize = 300;

#[test]
fn files_are_short() {
    let lines = |path: &String| read(path).lines().count();
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|path| lines(path) > LINES)
        .map(|path| format!("{path}: {} lines", lines(&path)))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn arguments_are_no_tuples() {
    let taken_apart: Vec<String> =
        sources().iter().flat_map(|path| Functions::of(path).with_tuples).collect();
    assert!(taken_apart.is_empty(), "{taken_apart:#?}");
}

/// Paths between back quotes in a part of a document.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn code_is_unsafe_only_where_the_document_says() {
    let document = read("docs/architecture.md");
    let (_, list) = document.split_once("## Where code is unsafe\n").expect("its heading");
    let list = list.split("\n## ").next().unwrap_or_default();
    let allowed: Vec<&str> = quoted(list).filter(|path| path.contains('/')).collect();
    let unsafe_files: BTreeSet<String> = sources()
        .into_iter()
        .filter(|path| !is_test(path) && Functions::of(path).is_unsafe)
        .collect();
    let lists = |entry: &str, path: &str| match entry.ends_with('/') {
        true => path.starts_with(entry),
        false => path == entry,
    };
    let unlisted: Vec<&String> = unsafe_files
        .iter()
        .filter(|path| !allowed.iter().any(|entry| lists(entry, path)))
        .collect();
    assert!(unlisted.is_empty(), "not listed: {unlisted:#?}");
    let stale: Vec<&&str> = allowed
        .iter()
        .filter(|entry| !unsafe_files.iter().any(|path| lists(entry, path)))
        .collect();
    assert!(stale.is_empty(), "without unsafe code: {stale:#?}");
}

#[test]
fn files_that_documents_name_exist() {
    const TOPS: [&str; 16] = [
        "src/",
        "engine/",
        "lab/",
        "serve/",
        "cli/",
        "kernels/",
        "plan/",
        "actors/",
        "traces/",
        "tests/",
        "docs/",
        "examples/",
        "benches/",
        "cluster/",
        "fuzz/",
        ".ci/",
    ];
    let mut documents = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    let docs = root().join("docs").read_dir().expect("docs");
    let names =
        docs.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    documents.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")));
    let mut missing = Vec::new();
    for document in documents {
        let text = read(&document);
        for path in quoted(&text) {
            let is_path = TOPS.iter().any(|top| path.starts_with(top))
                && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            // `NAME` stands for the name of a new file.
            if is_path && !path.contains("NAME") && !root().join(path).exists() {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_readme_names_every_architecture() {
    let readme = read("README.md");
    let names: BTreeSet<&str> = quoted(&readme).collect();
    let supported = lapwing_kernels::model::supported();
    let missing: Vec<_> = supported.iter().filter(|name| !names.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    let row = format!("| architectures | {}:", supported.len());
    assert!(readme.contains(&row), "its table lacks {row}");
}
