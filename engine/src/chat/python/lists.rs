//! Methods of Python's lists, tuples and dictionaries that change nothing.

use minijinja::{Error, ErrorKind, Value};

use crate::chat::arguments::Arguments;

/// Calls a method of a list or tuple.
pub(super) fn call(list: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let bound = |parameters| Arguments::bind(method, parameters, args);
    match method {
        "count" => {
            let args = bound(&["value"])?;
            let wanted = args.need(0)?;
            let mut count = 0;
            for item in list.try_iter()? {
                count += usize::from(item == *wanted);
            }
            Ok(count.into())
        }
        "index" => {
            let args = bound(&["value", "start", "stop"])?;
            let wanted = args.need(0)?;
            let length = list.len().unwrap_or(0);
            let start = super::text::bound(args.integer(1)?, 0, length);
            let stop = super::text::bound(args.integer(2)?, length, length);
            let found = list.try_iter()?.enumerate().take(stop).skip(start);
            match found.into_iter().find(|(_, item)| item == wanted) {
                Some((at, _)) => Ok(at.into()),
                None => {
                    Err(Error::new(ErrorKind::InvalidOperation, "the value is not in the list"))
                }
            }
        }
        "copy" => {
            bound(&[])?;
            Ok(list.clone())
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

/// Calls a method of a dictionary that the template engine lacks.
pub(super) fn call_map(map: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    match method {
        "copy" if map.get_attr("copy")?.is_undefined() => {
            Arguments::bind(method, &[], args)?;
            Ok(Some(map.clone()))
        }
        _ => Ok(None),
    }
}
