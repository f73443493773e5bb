//! Circles of files that import each other, within a crate.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Imports, imports};
use super::sources::sources;

/// Files of a circle.
const FILES: usize = 5;

/// Finds the circles of a graph, as Tarjan (1972) does.
#[derive(Default)]
struct Circles<'a> {
    /// The number of each file that has been reached.
    numbers: BTreeMap<&'a str, usize>,
    /// Those of them whose circles are not found yet.
    open: Vec<&'a str>,
    found: Vec<BTreeSet<&'a str>>,
}

impl<'a> Circles<'a> {
    /// The files of each circle. A file that leads to none that leads back is a circle of its own.
    fn of(imports: &'a Imports) -> Vec<BTreeSet<&'a str>> {
        let mut circles = Circles::default();
        for file in imports.keys() {
            if !circles.numbers.contains_key(file.as_str()) {
                circles.reach(imports, file);
            }
        }
        circles.found
    }

    /// Returns the least number of an open file that this one leads to.
    fn reach(&mut self, imports: &'a Imports, file: &'a str) -> usize {
        let (number, place) = (self.numbers.len(), self.open.len());
        self.numbers.insert(file, number);
        self.open.push(file);
        let mut least = number;
        for other in imports.get(file).into_iter().flatten() {
            least = least.min(match self.numbers.get(other.as_str()) {
                None => self.reach(imports, other),
                Some(known) if self.open.contains(&other.as_str()) => *known,
                Some(_) => continue,
            });
        }
        if least == number {
            self.found.push(self.open.drain(place..).collect());
        }
        least
    }
}

/// A circle with its imports, one a line.
fn told(circle: &BTreeSet<&str>, imports: &Imports) -> String {
    let mut text = format!("{} files\n", circle.len());
    for file in circle {
        let others = imports.get(*file).into_iter().flatten();
        let others: Vec<&str> =
            others.map(String::as_str).filter(|other| circle.contains(other)).collect();
        text += &format!("  {file} imports {}\n", others.join(", "));
    }
    text
}

#[test]
fn circles_of_imports_have_at_most_five_files() {
    let is_root = |path: &String| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    let (mut found, mut large) = (0, String::new());
    for root in sources().iter().filter(|path| is_root(path)) {
        let imports = imports(root);
        found += imports.values().map(BTreeSet::len).sum::<usize>();
        let circles = Circles::of(&imports).into_iter().filter(|circle| circle.len() > FILES);
        circles.for_each(|circle| large += &told(&circle, &imports));
    }
    assert!(found > 2000, "only {found} imports");
    assert!(large.is_empty(), "move what many files share to a file of its own:\n{large}");
}

#[test]
fn a_circle_is_all_files_that_lead_to_each_other() {
    let imports = |file: &str, others: &[&str]| {
        (file.to_owned(), others.iter().map(ToString::to_string).collect())
    };
    let graph = Imports::from([
        imports("a", &["b", "d"]),
        imports("b", &["c"]),
        imports("c", &["a", "e"]),
        imports("d", &["b"]),
        imports("e", &["f"]),
        imports("f", &["e"]),
    ]);
    let circles = Circles::of(&graph);
    assert_eq!(circles, [BTreeSet::from(["e", "f"]), BTreeSet::from(["a", "b", "c", "d"])]);
}
