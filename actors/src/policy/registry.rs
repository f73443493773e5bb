//! Policies by name.

use super::fcfs::Fcfs;
use super::queue_policy::QueuePolicy;

/// A policy that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Its effect, in one line.
    pub about: &'static str,
    /// Makes one for an engine.
    pub make: fn() -> Box<dyn QueuePolicy>,
}

/// Every policy that comes with Lapwing, the default first.
pub fn known() -> &'static [Known] {
    KNOWN
}

/// The policy of that name; `None` if there is none.
pub fn by_name(name: &str) -> Option<Box<dyn QueuePolicy>> {
    KNOWN.iter().find(|known| known.name == name).map(|known| (known.make)())
}

const KNOWN: &[Known] = &[Known {
    name: "fcfs",
    about: "first come, first served; a request that does not fit blocks those behind it",
    make: || Box::new(Fcfs),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_the_policy_that_bears_it() {
        for known in known() {
            assert_eq!(by_name(known.name).expect("is known").name(), known.name);
            assert_eq!(super::known().iter().filter(|k| k.name == known.name).count(), 1);
        }
        assert!(by_name("no-such-policy").is_none());
    }
}
