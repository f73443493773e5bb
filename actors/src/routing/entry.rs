//! What a routing policy is made from, by its name.

use lapwing_plan::registry::{Entry, Parameters};

use super::route_policy::RoutePolicy;

/// Makes a routing policy.
pub type MakeRoute = fn(&Parameters) -> Box<dyn RoutePolicy>;

/// A routing policy that can be chosen by name.
pub type RouteEntry = Entry<MakeRoute>;
