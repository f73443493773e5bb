//! Functions of templates that remember something: `cycler` and `joiner`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use minijinja::value::{Object, Rest, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value};

use super::arguments::Arguments;

/// Gives its values in turn.
#[derive(Debug)]
struct Cycler {
    values: Vec<Value>,
    at: AtomicUsize,
}

impl Object for Cycler {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        (key.as_str() == Some("current")).then(|| self.current())
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        Arguments::bind(method, &[], args)?;
        match method {
            "next" => {
                let current = self.current();
                let next = (self.at.load(Ordering::Relaxed) + 1) % self.values.len();
                self.at.store(next, Ordering::Relaxed);
                Ok(current)
            }
            "reset" => {
                self.at.store(0, Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

impl Cycler {
    fn current(&self) -> Value {
        self.values[self.at.load(Ordering::Relaxed)].clone()
    }
}

/// Gives nothing the first time, and then its text.
#[derive(Debug)]
struct Joiner {
    between: Value,
    used: AtomicBool,
}

impl Object for Joiner {
    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        Arguments::bind("joiner", &[], args)?;
        let is_used = self.used.swap(true, Ordering::Relaxed);
        Ok(if is_used { self.between.clone() } else { "".into() })
    }
}

/// `cycler(value, …)`.
pub(super) fn cycler(values: Rest<Value>) -> Result<Value, Error> {
    if values.is_empty() {
        return Err(Error::new(ErrorKind::MissingArgument, "'cycler' needs a value"));
    }
    Ok(Value::from_object(Cycler { values: values.0, at: AtomicUsize::new(0) }))
}

/// `joiner(sep=", ")`.
pub(super) fn joiner(args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = Arguments::bind("joiner", &["sep"], &args.into_values())?;
    let between = args.get(0).cloned().unwrap_or_else(|| ", ".into());
    Ok(Value::from_object(Joiner { between, used: AtomicBool::new(false) }))
}
