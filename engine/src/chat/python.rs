//! Python's methods and operators for the values of templates.

pub(super) mod format;
mod lists;
pub(super) mod numbers;
pub(super) mod repr;
pub(super) mod text;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

use super::meter::{Meter, metered};

/// Calls a method of a value.
///
/// # Errors
/// If the value has no such method, or the method fails.
pub(super) fn call_method(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let charge = |meter: &Meter| -> Result<(), Error> {
        args.iter().chain([value]).try_for_each(|value| meter.read(value))
    };
    match value.kind() {
        ValueKind::String => {
            metered(state, charge)?;
            let text = value.as_str().unwrap_or_default();
            if matches!(method, "format" | "format_map") {
                let mapped = (method == "format_map").then(|| format::named(args)).transpose()?;
                return format::braces(
                    state,
                    text,
                    mapped.as_ref().map_or(args, std::slice::from_ref),
                );
            }
            metered(state, |meter| text::call(meter, text, method, args))
        }
        ValueKind::Seq => {
            metered(state, charge)?;
            lists::call(value, method, args)
        }
        ValueKind::Map => match lists::call_map(value, method, args)? {
            Some(found) => Ok(found),
            None => {
                minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
            }
        },
        ValueKind::Number => numbers::call(value, method),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}
