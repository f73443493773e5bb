//! The modules of a crate: the file of each, and what its names mean.

use std::collections::HashMap;

use syn::{Attribute, Expr, ExprLit, File, Item, ItemMod, Lit, Meta, UseTree};

use super::sources::{read, root};

/// Uses that are followed for a name. They may lead to each other in a loop.
const USES: usize = 8;

/// The modules of a crate. The first one is its root.
#[derive(Default)]
pub(crate) struct Modules {
    all: Vec<Module>,
    /// The syntax of each file, with the module that it is.
    pub(crate) files: Vec<(usize, File)>,
}

#[derive(Default)]
struct Module {
    file: String,
    parent: Option<usize>,
    children: HashMap<String, usize>,
    /// Names of its own items.
    items: Vec<String>,
    uses: Vec<Use>,
}

/// A name that a module takes from elsewhere; `*` for all of a module's.
pub(crate) struct Use {
    name: String,
    pub(crate) path: Vec<String>,
}

/// What a path leads to.
enum Found {
    Module(usize),
    /// An item of that module.
    Item(usize),
}

impl Modules {
    /// Those of the crate with that root.
    pub(crate) fn of(path: &str) -> Modules {
        let mut modules = Modules::default();
        modules.add_file(path, path.rsplit_once('/').map_or("", |(folder, _)| folder), None);
        modules
    }

    /// The file of a module.
    pub(crate) fn file(&self, module: usize) -> &str {
        &self.all[module].file
    }

    /// A module of that name in another one.
    pub(crate) fn child(&self, module: usize, name: &str) -> Option<usize> {
        self.all[module].children.get(name).copied()
    }

    /// Whether a module is in that file, or in a module that is.
    pub(crate) fn is_within(&self, module: usize, file: &str) -> bool {
        let mut modules = std::iter::successors(Some(module), |at| self.all[*at].parent);
        modules.any(|at| self.all[at].file == file)
    }

    /// The file with the item that a path leads to from a module. `None` for a module, and for what is not of this crate.
    pub(crate) fn file_of(&self, module: usize, path: &[String]) -> Option<&str> {
        match self.find(module, path, 0)? {
            Found::Item(module) => Some(self.file(module)),
            Found::Module(_) => None,
        }
    }

    /// Adds a file, whose modules are in a folder.
    fn add_file(&mut self, path: &str, folder: &str, parent: Option<usize>) -> usize {
        let file = syn::parse_file(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let at = self.add_module(path.to_owned(), parent);
        self.add_items(at, folder, &file.items);
        self.files.push((at, file));
        at
    }

    fn add_module(&mut self, file: String, parent: Option<usize>) -> usize {
        self.all.push(Module { file, parent, ..Module::default() });
        self.all.len() - 1
    }

    fn add_items(&mut self, at: usize, folder: &str, items: &[Item]) {
        for item in items {
            let name = match item {
                Item::Mod(module) if is_of_tests(&module.attrs) => None,
                Item::Mod(module) => {
                    let child = self.add_child(at, folder, module);
                    self.all[at].children.insert(module.ident.to_string(), child);
                    None
                }
                Item::Use(item) => {
                    self.all[at].uses.extend(leaves(&item.tree));
                    None
                }
                Item::Const(item) => Some(&item.ident),
                Item::Enum(item) => Some(&item.ident),
                Item::Fn(item) => Some(&item.sig.ident),
                Item::Macro(item) => item.ident.as_ref(),
                Item::Static(item) => Some(&item.ident),
                Item::Struct(item) => Some(&item.ident),
                Item::Trait(item) => Some(&item.ident),
                Item::Type(item) => Some(&item.ident),
                Item::Union(item) => Some(&item.ident),
                _ => None,
            };
            self.all[at].items.extend(name.map(ToString::to_string));
        }
    }

    fn add_child(&mut self, at: usize, folder: &str, module: &ItemMod) -> usize {
        let inner = format!("{folder}/{}", module.ident);
        if let Some((_, items)) = &module.content {
            let child = self.add_module(self.file(at).to_owned(), Some(at));
            self.add_items(child, &inner, items);
            return child;
        }
        let file = match path_of(&module.attrs) {
            Some(path) => format!("{folder}/{path}"),
            None => format!("{inner}.rs"),
        };
        let is_there = root().join(&file).is_file();
        self.add_file(&if is_there { file } else { format!("{inner}/mod.rs") }, &inner, Some(at))
    }

    /// What a path leads to from a module, after that many uses.
    fn find(&self, module: usize, path: &[String], uses: usize) -> Option<Found> {
        let (first, rest) = path.split_first()?;
        let next = match first.as_str() {
            "crate" => Found::Module(0),
            "self" => Found::Module(module),
            "super" => Found::Module(self.all[module].parent?),
            name => self.named(module, name, uses)?,
        };
        match next {
            // An item that has no name here is what a macro makes.
            Found::Module(inner) if !rest.is_empty() => {
                self.find(inner, rest, uses).or(Some(Found::Item(inner)))
            }
            next => Some(next),
        }
    }

    fn named(&self, module: usize, name: &str, uses: usize) -> Option<Found> {
        let Module { children, items, uses: taken, .. } = &self.all[module];
        if let Some(child) = children.get(name) {
            return Some(Found::Module(*child));
        }
        if items.iter().any(|item| item == name) {
            return Some(Found::Item(module));
        }
        if uses == USES {
            return None;
        }
        if let Some(one) = taken.iter().find(|one| one.name == name) {
            return self.find(module, &one.path, uses + 1);
        }
        let all = taken.iter().filter(|all| all.name == "*");
        let mut others = all.filter_map(|all| self.find(module, &all.path, uses + 1));
        others.find_map(|other| match other {
            Found::Module(other) => self.named(other, name, uses + 1),
            Found::Item(_) => None,
        })
    }
}

/// Whether something is there only for tests.
pub(crate) fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.replace(' ', "").starts_with("all(test,")
        }
        _ => false,
    })
}

/// The path that an attribute gives to the file of a module.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("path") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The names that a use takes.
pub(crate) fn leaves(tree: &UseTree) -> Vec<Use> {
    let mut found = Vec::new();
    add_leaves(tree, &[], &mut found);
    found
}

fn add_leaves(tree: &UseTree, before: &[String], found: &mut Vec<Use>) {
    let with = |name: String| [before, &[name]].concat();
    let (name, path) = match tree {
        UseTree::Path(path) => return add_leaves(&path.tree, &with(path.ident.to_string()), found),
        UseTree::Group(group) => {
            return group.items.iter().for_each(|tree| add_leaves(tree, before, found));
        }
        UseTree::Glob(_) => ("*".to_owned(), before.to_vec()),
        UseTree::Rename(it) => (it.rename.to_string(), with(it.ident.to_string())),
        UseTree::Name(it) if it.ident == "self" => {
            (before.last().cloned().unwrap_or_default(), before.to_vec())
        }
        UseTree::Name(it) => (it.ident.to_string(), with(it.ident.to_string())),
    };
    found.push(Use { name, path });
}
