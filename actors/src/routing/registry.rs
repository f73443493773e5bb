//! Routing policies by name.

use lapwing_plan::registry::{ChoiceError, Chosen, Registry};

use super::entry::RouteEntry;
use super::route_policy::RoutePolicy;
use super::{cache_aware, d2lpm, least_load, makespan, preble, round_robin, two_choices};

/// Every routing policy that comes with Lapwing, the default first.
pub fn known() -> &'static [RouteEntry] {
    KNOWN
}

/// The routing policy that a text chooses: `NAME`, or `NAME:KEY=VALUE,…`.
///
/// # Errors
/// [`ChoiceError`].
pub fn by_name(text: &str) -> Result<Box<dyn RoutePolicy>, ChoiceError> {
    let known = Registry::new("routing policy", KNOWN, &[]);
    let Chosen { entry, parameters } = known.find(text)?;
    Ok(entry.make()(&parameters))
}

const KNOWN: &[RouteEntry] = &[
    round_robin::ENTRY,
    least_load::ENTRY,
    two_choices::ENTRY,
    cache_aware::ENTRY,
    preble::ENTRY,
    d2lpm::ENTRY,
    makespan::ENTRY,
];
