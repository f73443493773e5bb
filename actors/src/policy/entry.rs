//! What a policy is made from, by its name.

use lapwing_plan::registry::{Entry, Parameters};

use super::queue_policy::QueuePolicy;

/// Makes a policy for an engine.
pub type MakePolicy = fn(&Parameters) -> Box<dyn QueuePolicy>;

/// A policy that can be chosen by name.
pub type PolicyEntry = Entry<MakePolicy>;
