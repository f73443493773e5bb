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
}
