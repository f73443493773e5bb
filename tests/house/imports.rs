//! The files that each file of a crate imports. What a file takes from the modules around it is no import, as it is a part of
//! these; and a name that is handed on by `pub use` ties those who take it to the file that defines it.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, Macro, Path, Visibility};

use super::modules::{Modules, is_of_tests, leaves};

/// The files that each file imports.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// The imports of the crate with that root.
pub(crate) fn imports(root: &str) -> Imports {
    let modules = Modules::of(root);
    let mut found = Search { modules: &modules, at: 0, found: Imports::new() };
    for (at, file) in &modules.files {
        found.at = *at;
        found.visit_file(file);
    }
    found.found
}

struct Search<'a> {
    modules: &'a Modules,
    /// The module that is searched.
    at: usize,
    found: Imports,
}

impl Search<'_> {
    fn add(&mut self, path: &[String]) {
        let Some(other) = self.modules.file_of(self.at, path) else { return };
        if !self.modules.is_within(self.at, other) {
            let file = self.modules.file(self.at).to_owned();
            self.found.entry(file).or_default().insert(other.to_owned());
        }
    }
}

impl<'a> Visit<'a> for Search<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_of_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if item.content.is_some() {
            let outer = self.at;
            self.at = self.modules.child(outer, &item.ident.to_string()).unwrap_or(outer);
            visit::visit_item_mod(self, item);
            self.at = outer;
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            leaves(&item.tree).iter().for_each(|taken| self.add(&taken.path));
        }
    }

    fn visit_path(&mut self, path: &'a Path) {
        let names: Vec<String> = path.segments.iter().map(|it| it.ident.to_string()).collect();
        self.add(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        let text = call.tokens.to_string().replace(" :: ", "::");
        let words = text.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
        for path in words.filter(|word| word.contains("::")) {
            self.add(&path.split("::").map(str::to_owned).collect::<Vec<_>>());
        }
        visit::visit_macro(self, call);
    }
}
