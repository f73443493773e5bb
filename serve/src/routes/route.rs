//! A path of the server.

use axum::routing::MethodRouter;

use super::group::PathGroup;

/// A path.
#[derive(Debug)]
pub(crate) struct Route {
    /// What it belongs to.
    pub(crate) group: PathGroup,
    /// As the router has it.
    pub(crate) path: &'static str,
    /// Its methods.
    pub(crate) methods: &'static [&'static str],
    /// What it is for, in the document of the interface.
    pub(crate) about: &'static str,
    /// Whether it needs no key: it tells nothing of models or clients.
    pub(crate) is_open: bool,
    /// Its handlers.
    pub(crate) make: fn() -> MethodRouter,
}

impl PathGroup {
    /// A path of this group that needs a key where there are keys.
    pub(super) const fn route(
        self,
        path: &'static str,
        methods: &'static [&'static str],
        about: &'static str,
        make: fn() -> MethodRouter,
    ) -> Route {
        Route { group: self, path, methods, about, is_open: false, make }
    }

    /// A path of this group that needs no key.
    pub(super) const fn open(
        self,
        path: &'static str,
        methods: &'static [&'static str],
        about: &'static str,
        make: fn() -> MethodRouter,
    ) -> Route {
        Route { is_open: true, ..self.route(path, methods, about, make) }
    }
}
