//! The choice of a routing policy, by name or as an object.

use std::fmt;
use std::sync::Arc;

use lapwing_plan::registry::ChoiceError;

use super::registry::by_name;
use super::route_policy::RoutePolicy;

/// Which routing policy a router has: one that comes with Lapwing, by name, with parameters as in `cache-aware:match=0.3`, or one of the
/// caller's own. The default is `round-robin`.
#[derive(Clone)]
pub struct RouteChoice(Choice);

#[derive(Clone)]
enum Choice {
    Named(String),
    Own { name: String, make: Make },
}

type Make = Arc<dyn Fn() -> Box<dyn RoutePolicy> + Send + Sync>;

impl RouteChoice {
    /// A policy of one's own; `make` is called once for each router.
    pub fn made_by<P: RoutePolicy + 'static>(
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> RouteChoice {
        let name = make().name().to_owned();
        RouteChoice(Choice::Own { name, make: Arc::new(move || Box::new(make())) })
    }

    /// Name of the policy, with the parameters that it was chosen with.
    pub fn name(&self) -> &str {
        match &self.0 {
            Choice::Named(name) | Choice::Own { name, .. } => name,
        }
    }

    /// The policy, for one router.
    ///
    /// # Errors
    /// [`ChoiceError`] when there is none of that name, or it has no such parameters.
    pub fn make(&self) -> Result<Box<dyn RoutePolicy>, ChoiceError> {
        match &self.0 {
            Choice::Named(name) => by_name(name),
            Choice::Own { make, .. } => Ok(make()),
        }
    }
}

impl Default for RouteChoice {
    fn default() -> RouteChoice {
        RouteChoice::from("round-robin")
    }
}

impl From<&str> for RouteChoice {
    fn from(name: &str) -> RouteChoice {
        RouteChoice(Choice::Named(name.to_owned()))
    }
}

impl From<String> for RouteChoice {
    fn from(name: String) -> RouteChoice {
        RouteChoice(Choice::Named(name))
    }
}

impl<P: RoutePolicy + Clone + Sync + 'static> From<P> for RouteChoice {
    fn from(policy: P) -> RouteChoice {
        RouteChoice::made_by(move || policy.clone())
    }
}

impl fmt::Debug for RouteChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RouteChoice").field(&self.name()).finish()
    }
}
