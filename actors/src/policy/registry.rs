//! Policies by name.

use lapwing_plan::registry::{ChoiceError, Chosen, Registry};

use super::*;

/// Every policy that comes with Lapwing, the default first.
pub fn known() -> &'static [PolicyEntry] {
    KNOWN
}

/// The policy that a text chooses: `NAME`, or `NAME:KEY=VALUE,…`. With every policy, clients may have limits: `rpm=N`,
/// `rpm.CLIENT=N`.
///
/// # Errors
/// [`ChoiceError`].
pub fn by_name(text: &str) -> Result<Box<dyn QueuePolicy>, ChoiceError> {
    let known = Registry::new("policy", KNOWN, limited::LIMITS);
    let Chosen { entry, parameters } = known.find(text)?;
    let (made, limits) = (entry.make()(&parameters), RequestLimits::of(&parameters));
    Ok(match limits == RequestLimits::default() {
        true => made,
        false => Box::new(Limited::new(entry.name(), made, limits)),
    })
}

const KNOWN: &[PolicyEntry] = &[
    fcfs::ENTRY,
    fcfs::OVERTAKING,
    shortest::SJF,
    shortest::SRTF,
    mlfq::ENTRY,
    hrrn::ENTRY,
    lpm::ENTRY,
    dfs_weight::ENTRY,
    preble::ENTRY,
    vtc::ENTRY,
    dlpm::ENTRY,
    learned::ENTRY,
    limited::ENTRY,
    edf::ENTRY,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_the_policy_that_bears_it() {
        for known in known() {
            assert_eq!(by_name(known.name()).expect("is known").name(), known.name());
            assert_eq!(super::known().iter().filter(|k| k.name() == known.name()).count(), 1);
            for parameter in known.parameters() {
                assert!((parameter.from..=parameter.to).contains(&parameter.default));
            }
        }
        assert!(by_name("no-such-policy").is_err());
    }
}
