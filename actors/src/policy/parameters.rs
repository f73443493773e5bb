//! Parameters of policies in text form.

use std::collections::HashMap;

use super::choice::PolicyError;
use super::client::ClientId;

/// A number that changes a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name in `POLICY:NAME=VALUE`.
    pub name: &'static str,
    /// Its meaning and unit.
    pub about: &'static str,
    /// Its value if none is given.
    pub default: f64,
    /// Least value.
    pub from: f64,
    /// Greatest value.
    pub to: f64,
}

/// Values of a policy's parameters.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    values: HashMap<&'static str, f64>,
    weights: HashMap<ClientId, f64>,
}

/// Prefix of the parameter that weighs a client: `weight.NAME`.
const WEIGHT: &str = "weight.";

impl Parameters {
    /// Reads `KEY=VALUE,…`; parameters that are not named have their defaults. If `weighted`, clients may have
    /// weights.
    pub(super) fn parse(
        policy: &'static str,
        text: &str,
        known: &[Parameter],
        weighted: bool,
    ) -> Result<Parameters, PolicyError> {
        let mut parameters = Parameters::default();
        parameters.values.extend(known.iter().map(|known| (known.name, known.default)));
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let client = key.strip_prefix(WEIGHT).filter(|name| weighted && !name.is_empty());
            let named = known.iter().find(|known| known.name == key);
            let (from, to) = match (named, client) {
                (Some(named), _) => (named.from, named.to),
                (None, Some(_)) => (1e-3, 1e3),
                (None, None) => return Err(unknown(policy, key, known, weighted)),
            };
            let number = value.parse().ok().filter(|number| (from..=to).contains(number));
            let Some(number) = number else {
                let (parameter, found) = (key.to_owned(), value.to_owned());
                return Err(PolicyError::Value { policy, parameter, found, from, to });
            };
            match (named, client) {
                (Some(named), _) => drop(parameters.values.insert(named.name, number)),
                (None, Some(name)) => drop(parameters.weights.insert(name.into(), number)),
                (None, None) => {}
            }
        }
        Ok(parameters)
    }

    /// The value of a parameter that the policy has.
    pub fn value(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or_default()
    }

    /// Weights of clients other than 1.
    pub fn weights(&self) -> HashMap<ClientId, f64> {
        self.weights.clone()
    }
}

fn unknown(policy: &'static str, key: &str, known: &[Parameter], weighted: bool) -> PolicyError {
    let names = known.iter().map(|known| known.name.to_owned());
    let names: Vec<String> = names.chain(weighted.then(|| "weight.CLIENT".to_owned())).collect();
    PolicyError::Parameter { policy, found: key.to_owned(), known: names.join(", ") }
}
