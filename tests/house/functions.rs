//! What the functions of a file look like.

use syn::visit::{self, Visit};
use syn::{ExprUnsafe, FnArg, ItemForeignMod, ItemImpl, Pat, Safety, Signature};

use super::sources::read;

/// What was found in the functions of a file.
#[derive(Default)]
pub(crate) struct Functions {
    path: String,
    /// Functions with an argument that is a tuple pattern.
    pub(crate) with_tuples: Vec<String>,
    /// Whether anything is unsafe.
    pub(crate) is_unsafe: bool,
}

impl Functions {
    /// Those of a file. What macros make is not seen.
    pub(crate) fn of(path: &str) -> Functions {
        let file = syn::parse_file(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut found = Functions { path: path.to_owned(), ..Functions::default() };
        found.visit_file(&file);
        found
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_signature(&mut self, signature: &'a Signature) {
        self.is_unsafe |= matches!(signature.safety, Safety::Unsafe(_));
        let is_tuple = |argument: &FnArg| match argument {
            FnArg::Typed(typed) => matches!(*typed.pat, Pat::Tuple(_)),
            FnArg::Receiver(_) => false,
        };
        if signature.inputs.iter().any(is_tuple) {
            self.with_tuples.push(format!("{}: {}", self.path, signature.ident));
        }
        visit::visit_signature(self, signature);
    }

    fn visit_expr_unsafe(&mut self, block: &'a ExprUnsafe) {
        self.is_unsafe = true;
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        self.is_unsafe |= item.unsafety.is_some();
        visit::visit_item_impl(self, item);
    }

    fn visit_item_foreign_mod(&mut self, item: &'a ItemForeignMod) {
        self.is_unsafe |= item.unsafety.is_some();
        visit::visit_item_foreign_mod(self, item);
    }
}
