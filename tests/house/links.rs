//! Relative links of the documents lead to files of the repository, and in the API documentation to pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::sources::{read, root};

/// The documents.
fn documents() -> Vec<String> {
    let docs = root().join("docs").read_dir().expect("docs");
    let names =
        docs.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let names = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    ["README.md".to_owned(), "CONTRIBUTING.md".to_owned()].into_iter().chain(names).collect()
}

/// Labels and targets of the link definitions of a text.
fn definitions(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ")).collect()
}

/// A path below the root, without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The file that a target means in a document.
fn file_of(document: &str, target: &str) -> PathBuf {
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    plain(&folder.join(target.split('#').next().unwrap_or_default()))
}

/// The document of each page of the guide, by its name.
fn pages() -> BTreeMap<String, PathBuf> {
    let list = read("src/guide/documents.rs");
    let pages = list.lines().filter_map(|line| {
        let (name, files) = line.trim().strip_suffix("\",")?.split_once(": \"")?;
        let file = files.rsplit('"').next()?;
        Some((name.to_owned(), file_of("src/guide/documents.rs", file)))
    });
    pages.collect()
}

#[test]
fn relative_links_have_a_definition_so_that_pages_can_lead_elsewhere() {
    let mut inline = Vec::new();
    for document in documents() {
        let text = read(&document);
        for part in text.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            if !target.starts_with("http") && !target.starts_with('#') {
                inline.push(format!("{document}: {target}"));
            }
        }
    }
    assert!(inline.is_empty(), "write [text][TARGET], and below [TARGET]: TARGET: {inline:#?}");
}

#[test]
fn relative_links_lead_to_files_and_in_the_documentation_to_the_same_pages() {
    let links = read("src/guide/links.md");
    let in_pages: BTreeMap<&str, &str> = definitions(&links).into_iter().collect();
    let pictures = ["experts", "overlap", "timeline", "speculation"];
    let pictures = pictures.map(|name| read(&format!("src/guide/pictures/{name}.md")));
    let pictures: BTreeMap<&str, &str> =
        pictures.iter().flat_map(|text| definitions(text)).collect();
    let pages = pages();
    let mut wrong = Vec::new();
    for document in documents() {
        let text = read(&document);
        for (label, target) in definitions(&text) {
            if target.starts_with("http") {
                continue;
            }
            let file = file_of(&document, target);
            let is_right = match (in_pages.get(label), pictures.get(label)) {
                (None, Some(data)) => {
                    let data = data.split_once(";base64,").map(|(_, data)| data);
                    let data = data.and_then(|data| BASE64_STANDARD.decode(data).ok());
                    data == std::fs::read(root().join(&file)).ok()
                }
                (Some(page), None) => match page.strip_prefix("crate::guide::documents::") {
                    // That an item is there is checked where the documentation is made.
                    None => root().join(&file).is_file(),
                    Some(page) => {
                        let (name, anchor) = page.split_once('#').unzip();
                        let name = name.unwrap_or(page);
                        pages.get(name) == Some(&file)
                            && anchor == target.split_once('#').map(|(_, anchor)| anchor)
                    }
                },
                _ => false,
            };
            if !is_right || !root().join(&file).is_file() {
                wrong.push(format!("{document}: [{label}]: {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "see src/guide/links.md and docs/images/make.sh: {wrong:#?}");
}

#[test]
fn every_document_is_a_page() {
    let pages: BTreeSet<PathBuf> = pages().into_values().collect();
    let all = documents().into_iter().filter(|document| document != "README.md");
    let all: BTreeSet<PathBuf> = all.map(PathBuf::from).collect();
    assert_eq!(pages, all);
}
