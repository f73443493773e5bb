//! Choices of routes.

/// Which of several routes a chunk took; see [`Routed`](crate::event::Routed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChoice {
    /// Devices of its route.
    pub route: String,
    /// Predicted time until its end, in ns.
    pub end: u64,
    /// Devices of the route that it would have taken on idle devices.
    pub alone: String,
    /// Predicted time until its end on that route, in ns.
    pub alone_end: u64,
    /// Whether it passed chunks that waited for the same devices.
    pub is_due: bool,
    /// All routes that it could take, the one for idle devices first; empty in recordings that do not have them.
    pub routes: Vec<RatedRoute>,
}

/// A route that a chunk could take; see [`Rated`](crate::event::Rated).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedRoute {
    /// Its devices.
    pub route: String,
    /// Predicted time until the chunk's end on it, in ns.
    pub end: u64,
    /// The same on idle devices.
    pub alone: u64,
    /// Longest predicted time until one of its devices has done what it was sent before, in ns.
    pub busy: u64,
    /// False if the chunk would have ended earlier on it, but its graphs were not ready.
    pub is_ready: bool,
}
