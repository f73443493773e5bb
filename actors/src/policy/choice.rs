//! The choice of a policy, by name or as an object.

use std::fmt;
use std::sync::Arc;

use super::fcfs::Fcfs;
use super::queue_policy::QueuePolicy;
use super::registry::{by_name, known};

/// Which policy an engine has: one that comes with Lapwing, by name, or one of the caller's own.
///
/// It converts from a name, and from a policy that is `Clone + Sync`, of which each engine gets a clone.
/// [`made_by`](PolicyChoice::made_by) takes any other policy. The default is [`Fcfs`].
#[derive(Clone)]
pub struct PolicyChoice(Choice);

#[derive(Clone)]
enum Choice {
    Named(String),
    Own { name: String, make: Make },
}

type Make = Arc<dyn Fn() -> Box<dyn QueuePolicy> + Send + Sync>;

/// There is no policy of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy '{name}'; it must be one of {}", UnknownPolicy::known_names())]
pub struct UnknownPolicy {
    /// The name.
    pub name: String,
}

impl UnknownPolicy {
    /// Names of the policies that there are, with commas between them.
    pub fn known_names() -> String {
        known().iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
    }
}

impl PolicyChoice {
    /// A policy of one's own; `make` is called once for each engine.
    pub fn made_by<P: QueuePolicy + 'static>(
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> PolicyChoice {
        let name = make().name().to_owned();
        PolicyChoice(Choice::Own { name, make: Arc::new(move || Box::new(make())) })
    }

    /// Name of the policy.
    pub fn name(&self) -> &str {
        match &self.0 {
            Choice::Named(name) | Choice::Own { name, .. } => name,
        }
    }

    /// The policy, for one engine.
    ///
    /// # Errors
    /// [`UnknownPolicy`] when there is none of that name.
    pub fn make(&self) -> Result<Box<dyn QueuePolicy>, UnknownPolicy> {
        match &self.0 {
            Choice::Named(name) => {
                by_name(name).ok_or_else(|| UnknownPolicy { name: name.clone() })
            }
            Choice::Own { make, .. } => Ok(make()),
        }
    }
}

impl Default for PolicyChoice {
    fn default() -> PolicyChoice {
        PolicyChoice::from(Fcfs.name())
    }
}

impl From<&str> for PolicyChoice {
    fn from(name: &str) -> PolicyChoice {
        PolicyChoice(Choice::Named(name.to_owned()))
    }
}

impl From<String> for PolicyChoice {
    fn from(name: String) -> PolicyChoice {
        PolicyChoice(Choice::Named(name))
    }
}

impl<P: QueuePolicy + Clone + Sync + 'static> From<P> for PolicyChoice {
    fn from(policy: P) -> PolicyChoice {
        PolicyChoice::made_by(move || policy.clone())
    }
}

/// Two names are compared as text. A policy of one's own equals only clones of the same choice.
impl PartialEq for PolicyChoice {
    fn eq(&self, other: &PolicyChoice) -> bool {
        match (&self.0, &other.0) {
            (Choice::Named(one), Choice::Named(other)) => one == other,
            (Choice::Own { make: one, .. }, Choice::Own { make: other, .. }) => {
                Arc::ptr_eq(one, other)
            }
            _ => false,
        }
    }
}

/// The name, and for a policy of one's own an address that no other choice has while it is kept.
impl fmt::Debug for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Choice::Named(name) => f.debug_tuple("Named").field(name).finish(),
            Choice::Own { name, make } => {
                f.debug_tuple("Own").field(name).field(&Arc::as_ptr(make).cast::<()>()).finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_name_or_a_policy() {
        assert_eq!(PolicyChoice::default().make().expect("is known").name(), "fcfs");
        let own = PolicyChoice::from(Fcfs);
        assert_eq!((own.name(), own.make().expect("it is here").name()), ("fcfs", "fcfs"));
        assert!(own == own.clone() && own != PolicyChoice::from(Fcfs) && own != "fcfs".into());
        assert_ne!(format!("{own:?}"), format!("{:?}", PolicyChoice::default()));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = PolicyChoice::from("best").make().map(|_| ()).expect_err("unknown");
        assert!(error.to_string().contains("'best'") && error.to_string().contains("fcfs"));
    }
}
