//! Plans: which device runs which part of a model's graph.
//!
//! A [`Strategy`](strategy::Strategy) turns the graph and the shape of a chunk into a [`Route`]: a
//! list of stages, each of which runs on one device or is divided between several. Cost models
//! ([`cost`]) predict the time of each part, from a measured [`profile`], stated rates ([`rate`])
//! or the description of a phone ([`soc`]).

pub mod array;
pub mod blocks;
pub mod bound;
mod chunk;
mod complete;
pub mod cost;
mod device;
mod error;
pub mod fit;
pub mod moment;
pub mod needs;
pub mod pace;
mod phase;
pub mod place;
pub mod planner;
pub mod plans;
pub mod predict;
pub mod profile;
pub mod rate;
pub mod registry;
mod route;
mod rule;
pub mod shape;
#[cfg(feature = "soc")]
pub mod soc;
pub mod solve;
mod stage;
pub mod strategy;
pub mod time;
pub mod tree;
mod validate;
pub mod work;

pub use device::{DeviceId, device_of};
pub use error::PlanError;
pub use phase::Phase;
pub use route::{Flow, Route};
pub use rule::Rule;
pub use stage::{Stage, StagePart, StageWork};
pub use validate::RouteFor;
