//! Reads and writes devices as text: `NAME=FORM:KEY=VALUE,…`.

use std::fmt;
use std::str::FromStr;

use lapwing_kernels::device::DeviceKind;

use super::back_end::KindText;
use super::back_ends::FORMS;
use super::keys::Key;
use super::{DeviceSpec, DeviceSpecError};

impl FromStr for DeviceSpec {
    type Err = DeviceSpecError;

    fn from_str(text: &str) -> Result<DeviceSpec, DeviceSpecError> {
        parse(text)
    }
}

impl fmt::Display for DeviceSpec {
    /// Text that parses to an equal device, unless an engine refuses the device.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, f)
    }
}

/// The keys of a device.
fn keys_of(spec: &DeviceSpec) -> impl Iterator<Item = &'static Key> {
    spec.backend.get().keys().iter().copied().flatten().filter(|key| (key.of)(spec))
}

/// The kind of processor that a name begins with.
fn kind_of(name: &str) -> Option<DeviceKind> {
    DeviceKind::ALL.into_iter().find(|kind| name.starts_with(kind.name()))
}

fn parse(text: &str) -> Result<DeviceSpec, DeviceSpecError> {
    let (name, form) = match text.split_once('=') {
        Some((name, form)) => (name.trim(), Some(form.trim())),
        None => (text.trim(), None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 32 || !name.chars().all(is_name) {
        return Err(DeviceSpecError::Name { name: name.to_owned() });
    }
    let Some(form) = form else {
        return match name {
            "cpu" => Ok(DeviceSpec::cpu()),
            "gpu" => Ok(DeviceSpec::throttled("gpu", DeviceKind::Gpu)),
            "npu" => Ok(DeviceSpec::systolic("npu")),
            _ => Err(DeviceSpecError::Preset { name: name.to_owned() }),
        };
    };
    let (form, pairs) = form.split_once(':').unwrap_or((form, ""));
    let known = FORMS.into_iter().find(|known| known.name == form);
    let (which, parts) = match known.and_then(|known| known.divide) {
        Some(divide) => divide(pairs),
        None => (String::new(), pairs.split(',').collect()),
    };
    let pairs: Vec<(&str, &str)> = parts
        .into_iter()
        .filter(|pair| !pair.trim().is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let kind = kind_text(name, &pairs)?;
    let unknown = || DeviceSpecError::Form { name: name.to_owned(), form: form.to_owned() };
    let started = (known.ok_or_else(unknown)?.start)(name, kind, &which);
    let mut spec = started.map_err(|wrong| bad_kind(name, wrong.kind.name(), wrong.expected))?;
    for (at, (key, value)) in pairs.iter().enumerate() {
        if pairs[..at].iter().any(|(other, _)| other == key) {
            let (name, key) = (name.to_owned(), (*key).to_owned());
            return Err(DeviceSpecError::KeyTwice { name, key });
        }
        if *key != "kind" {
            set(&mut spec, key, value)?;
        }
    }
    Ok(spec)
}

/// What the name of a device and its keys say of its kind.
fn kind_text(name: &str, pairs: &[(&str, &str)]) -> Result<KindText, DeviceSpecError> {
    let given = pairs.iter().find(|(key, _)| *key == "kind").map(|(_, kind)| *kind);
    let kind =
        |given| DeviceKind::by_name(given).ok_or_else(|| bad_kind(name, given, "cpu, gpu or npu"));
    Ok(KindText { given: given.map(kind).transpose()?, of_name: kind_of(name) })
}

fn bad_kind(name: &str, value: &str, expected: &'static str) -> DeviceSpecError {
    let (name, key) = (name.to_owned(), "kind".to_owned());
    DeviceSpecError::Value { name, key, value: value.to_owned(), expected }
}

fn set(spec: &mut DeviceSpec, key: &str, value: &str) -> Result<(), DeviceSpecError> {
    let Some(known) = keys_of(spec).find(|known| known.name == key) else {
        let names: Vec<&str> = keys_of(spec).map(|known| known.name).chain(["kind"]).collect();
        return Err(DeviceSpecError::Key {
            name: spec.name.clone(),
            form: spec.backend.get().form(spec).name,
            key: key.to_owned(),
            known: names.join(", "),
        });
    };
    (known.read)(spec, value).ok_or_else(|| DeviceSpecError::Value {
        name: spec.name.clone(),
        key: key.to_owned(),
        value: value.to_owned(),
        expected: known.expected,
    })
}

fn write(spec: &DeviceSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let back_end = spec.backend.get();
    let form = back_end.form(spec);
    write!(f, "{}={}", spec.name, form.name)?;
    let which = Some(back_end.which().to_owned()).filter(|which| !which.is_empty());
    let kind = form.names_kind.then(|| format!("kind={}", spec.kind.name()));
    let pairs =
        keys_of(spec).filter_map(|key| Some(format!("{}={}", key.name, (key.write)(spec)?)));
    for (at, pair) in which.into_iter().chain(kind).chain(pairs).enumerate() {
        write!(f, "{}{pair}", if at == 0 { ':' } else { ',' })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
