//! The choice of a policy, by name or as an object.

use std::fmt;
use std::sync::Arc;

use lapwing_plan::registry::ChoiceError;

use super::fcfs::Fcfs;
use super::queue_policy::QueuePolicy;
use super::registry::by_name;

/// Which policy an engine has: one that comes with Lapwing, by name, or one of the caller's own.
///
/// It converts from a name, with parameters as in `vtc:output=3,weight.alice=2`, and from a policy that is `Clone + Sync`, of which each engine gets a clone.
/// [`made_by`](PolicyChoice::made_by) takes any other policy. The default is [`Fcfs`].
#[derive(Clone)]
pub struct PolicyChoice(Choice);

#[derive(Clone)]
enum Choice {
    Named(String),
    Own { name: String, make: Make },
}

type Make = Arc<dyn Fn() -> Box<dyn QueuePolicy> + Send + Sync>;

impl PolicyChoice {
    /// A policy of one's own; `make` is called once for each engine.
    pub fn made_by<P: QueuePolicy + 'static>(
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> PolicyChoice {
        let name = make().name().to_owned();
        PolicyChoice(Choice::Own { name, make: Arc::new(move || Box::new(make())) })
    }

    /// Name of the policy, with the parameters that it was chosen with.
    pub fn name(&self) -> &str {
        match &self.0 {
            Choice::Named(name) | Choice::Own { name, .. } => name,
        }
    }

    /// The policy, for one engine.
    ///
    /// # Errors
    /// [`ChoiceError`] when there is none of that name, or it has no such parameters.
    pub fn make(&self) -> Result<Box<dyn QueuePolicy>, ChoiceError> {
        match &self.0 {
            Choice::Named(name) => by_name(name),
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

    #[test]
    fn parameters_are_checked_and_named() {
        for good in [
            "vtc",
            "vtc:",
            "rpm:rpm=5",
            "vtc:rpm=9,rpm.bob=2",
            "vtc:output=3",
            "vtc:output=3,weight.alice=2.5",
            "mlfq:quantum=32",
        ] {
            assert!(PolicyChoice::from(good).make().is_ok(), "{good}");
        }
        let rows = [
            ("fcfs:x=1", "the policy fcfs has no parameter 'x'; it has rpm, rpm.CLIENT"),
            ("mlfq:x=1", "it has quantum, levels, starvation, rpm, rpm.CLIENT"),
            ("mlfq:weight.a=1", "it has quantum, levels, starvation"),
            (
                "vtc:output=no",
                "output of the policy vtc is 'no', but must be a number from 0 to 1000",
            ),
            ("vtc:output=-1", "is '-1'"),
            (
                "vtc:weight.a=0",
                "weight.a of the policy vtc is '0', but must be a number from 0.001",
            ),
            ("vtc:weight.=1", "no parameter 'weight.'"),
            ("vtc:rpm.=1", "no parameter 'rpm.'"),
            ("fcfs:rpm=0", "rpm of the policy fcfs is '0', but must be a number from 1 to"),
        ];
        for (bad, message) in rows {
            let error = PolicyChoice::from(bad).make().map(|_| ()).expect_err(bad).to_string();
            assert!(error.contains(message), "{bad}: {error}");
        }
    }
}
