//! Parameters of policies in text form.

use std::collections::HashMap;

use super::choice::PolicyError;
use super::client::ClientId;
use super::limited::RequestLimits;

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
    limits: RequestLimits,
}

/// Requests per minute of a client: that of all clients, and the prefix of that of one, `rpm.NAME`.
const LIMIT: &str = "rpm";
const LIMIT_OF: &str = "rpm.";
const LIMIT_MAX: f64 = 1e6;

/// Prefix of the parameter that weighs a client: `weight.NAME`.
const WEIGHT: &str = "weight.";

impl Parameters {
    /// Reads `KEY=VALUE,…`; parameters that are not named have their defaults. If `weighted`, clients may have
    /// weights. With every policy they may have limits.
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
            let Some((what, (from, to))) = meaning(key, known, weighted) else {
                return Err(unknown(policy, key, known, weighted));
            };
            let number = value.parse().ok().filter(|number| (from..=to).contains(number));
            let Some(number) = number else {
                let (parameter, found) = (key.to_owned(), value.to_owned());
                return Err(PolicyError::Value { policy, parameter, found, from, to });
            };
            match what {
                Meaning::Named(name) => drop(parameters.values.insert(name, number)),
                Meaning::Weight(client) => drop(parameters.weights.insert(client, number)),
                Meaning::Limit(None) => parameters.limits.others = Some(number as usize),
                Meaning::Limit(Some(client)) => {
                    parameters.limits.clients.insert(client, number as usize);
                }
            }
        }
        Ok(parameters)
    }

    /// The value of a parameter that the policy has.
    pub fn value(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or_default()
    }

    /// Requests per minute that clients may send.
    pub fn limits(&self) -> RequestLimits {
        self.limits.clone()
    }

    /// Weights of clients other than 1.
    pub fn weights(&self) -> HashMap<ClientId, f64> {
        self.weights.clone()
    }
}

/// What a key sets.
enum Meaning {
    Named(&'static str),
    Weight(ClientId),
    /// Of one client, or of all others.
    Limit(Option<ClientId>),
}

/// What a key sets, and the least and the greatest value.
fn meaning(key: &str, known: &[Parameter], weighted: bool) -> Option<(Meaning, (f64, f64))> {
    let client = |prefix| key.strip_prefix(prefix).filter(|name| !name.is_empty());
    if let Some(named) = known.iter().find(|known| known.name == key) {
        return Some((Meaning::Named(named.name), (named.from, named.to)));
    }
    if let Some(client) = client(WEIGHT).filter(|_| weighted) {
        return Some((Meaning::Weight(client.into()), (1e-3, 1e3)));
    }
    let limit = match client(LIMIT_OF) {
        Some(client) => Meaning::Limit(Some(client.into())),
        None if key == LIMIT => Meaning::Limit(None),
        None => return None,
    };
    Some((limit, (1.0, LIMIT_MAX)))
}

fn unknown(policy: &'static str, key: &str, known: &[Parameter], weighted: bool) -> PolicyError {
    let names = known.iter().map(|known| known.name.to_owned());
    let names = names.chain(weighted.then(|| "weight.CLIENT".to_owned()));
    let names: Vec<String> = names.chain([LIMIT.to_owned(), format!("{LIMIT_OF}CLIENT")]).collect();
    PolicyError::Parameter { policy, found: key.to_owned(), known: names.join(", ") }
}
