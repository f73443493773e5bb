//! The filters, tests, functions and methods that chat templates use, with their work measured.

use minijinja::value::{FunctionResult, Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value, filters, functions, tests};

use super::meter::{Meter, Namespaces, Size, exceeded, metered};
use super::rules::{BOUND, FEW, KEPT, STEP};

/// Most repetitions of a text by `*`.
const REPETITIONS_MAX: usize = 64;
/// Widest indent of `indent` and `tojson`.
pub(super) const INDENT_MAX: usize = 64;
/// Longest format of a date, and longest number in a format of texts.
const DATE_FORMAT_MAX: usize = 256;
const WIDTH_DIGITS_MAX: usize = 3;

/// Checks the operands of a filter before it runs.
type Check = fn(&Meter, &[Value]) -> Result<(), Error>;

/// Adds everything that a template may call.
pub(super) fn add_all(environment: &mut Environment<'_>) {
    add_own(environment);
    add_filters(environment);
    add_tests(environment);
    environment.set_unknown_method_callback(|state, value, method, args| {
        metered(state, |meter| check_method(meter, (value, method), args))?;
        minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
    });
    add_function(environment, "range", Value::from_function(functions::range));
    add_function(environment, "dict", Value::from_function(functions::dict));
    add_function(environment, "namespace", Value::from_function(functions::namespace));
}

/// What [`rules`](super::rules) inserts.
fn add_own(environment: &mut Environment<'_>) {
    environment.add_function(STEP, |state: &State, work: u64, bytes: u64| {
        metered(state, |meter| meter.step(work, bytes)).map(|()| true)
    });
    environment.add_filter(BOUND, |state: &State, value: Value| {
        metered(state, |meter| meter.keep(&value, Namespaces::Itself)).map(|()| value)
    });
    environment.add_filter(KEPT, |state: &State, value: Value| {
        metered(state, |meter| meter.keep(&value, Namespaces::Refused)).map(|()| value)
    });
    environment.add_filter(FEW, |value: Value| match value.as_usize() {
        Some(0..=REPETITIONS_MAX) => Ok(value),
        _ => Err(exceeded(&format!("it repeats by other than 0 to {REPETITIONS_MAX}"))),
    });
}

fn add_filters(environment: &mut Environment<'_>) {
    let mut add = |name: &'static str, filter: Value, check: Check| {
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            metered(state, |meter| check(meter, &args))?;
            filter.call(state, &args)
        });
    };
    add("length", Value::from_function(filters::length), shallow);
    add("count", Value::from_function(filters::length), shallow);
    add("default", Value::from_function(filters::default), shallow);
    add("d", Value::from_function(filters::default), shallow);
    add("first", Value::from_function(filters::first), shallow);
    add("last", Value::from_function(filters::last), shallow);
    add("items", Value::from_function(filters::items), deep);
    add("list", Value::from_function(filters::list), list);
    add("reverse", Value::from_function(filters::reverse), deep);
    add("string", Value::from_function(filters::string), deep);
    add("safe", Value::from_function(filters::safe), deep);
    add("bool", Value::from_function(filters::bool), shallow);
    add("int", Value::from_function(filters::int), deep);
    add("float", Value::from_function(filters::float), deep);
    add("abs", Value::from_function(filters::abs), shallow);
    add("round", Value::from_function(filters::round), shallow);
    add("lower", Value::from_function(filters::lower), deep);
    add("upper", Value::from_function(filters::upper), deep);
    add("title", Value::from_function(filters::title), deep);
    add("capitalize", Value::from_function(filters::capitalize), deep);
    add("trim", Value::from_function(filters::trim), deep);
    add("split", Value::from_function(filters::split), deep);
    add("replace", Value::from_function(filters::replace), replace);
    add("join", Value::from_function(filters::join), join);
    add("indent", Value::from_function(filters::indent), indent);
    add("sort", Value::from_function(filters::sort), sorted);
    add("unique", Value::from_function(filters::unique), sorted);
    add("dictsort", Value::from_function(filters::dictsort), sorted);
    add("min", Value::from_function(filters::min), sorted);
    add("max", Value::from_function(filters::max), sorted);
    add("sum", Value::from_function(filters::sum), deep);
    add("map", Value::from_function(filters::map), each);
    add("select", Value::from_function(filters::select), each);
    add("reject", Value::from_function(filters::reject), each);
    add("selectattr", Value::from_function(filters::selectattr), each);
    add("rejectattr", Value::from_function(filters::rejectattr), each);
}

fn add_tests(environment: &mut Environment<'_>) {
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("true", tests::is_true);
    environment.add_test("false", tests::is_false);
    environment.add_test("number", tests::is_number);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("float", tests::is_float);
    environment.add_test("string", tests::is_string);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("sequence", tests::is_sequence);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("even", tests::is_even);
    environment.add_test("divisibleby", tests::is_divisibleby);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("lower", tests::is_lower);
    environment.add_test("upper", tests::is_upper);
    for name in ["eq", "equalto", "=="] {
        environment.add_test(name, tests::is_eq);
    }
    for name in ["ne", "!="] {
        environment.add_test(name, tests::is_ne);
    }
    for name in ["lt", "lessthan", "<"] {
        environment.add_test(name, tests::is_lt);
    }
    for name in ["gt", "greaterthan", ">"] {
        environment.add_test(name, tests::is_gt);
    }
    for name in ["le", "<="] {
        environment.add_test(name, tests::is_le);
    }
    for name in ["ge", ">="] {
        environment.add_test(name, tests::is_ge);
    }
}

/// A function whose arguments and result are measured like the value of a namespace's attribute.
fn add_function(environment: &mut Environment<'_>, name: &'static str, function: Value) {
    environment.add_function(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        metered(state, |meter| {
            args.iter().try_for_each(|arg| meter.keep(arg, Namespaces::Refused))
        })?;
        let result = function.call(state, &args)?;
        metered(state, |meter| meter.check_length(&result))?;
        result.into_result()
    });
}

/// For filters that look at the value only from outside.
fn shallow(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    let bytes = args.iter().filter_map(Value::as_str).map(|text| text.len() as u64).sum::<u64>();
    meter.charge(Size { bytes, items: 1 }.work())
}

/// For filters that read all of the value, and make no larger one.
fn deep(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    args.iter().try_for_each(|arg| meter.measure(arg, Namespaces::Read).map(drop))
}

fn list(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    deep(meter, args)?;
    let chars = args.first().and_then(Value::as_str).map_or(0, str::len) as u64;
    if chars > meter.limits().items {
        return Err(exceeded(&format!("a value has more than {} elements", meter.limits().items)));
    }
    Ok(())
}

/// For filters that compare the elements with each other.
fn sorted(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    let Some(value) = args.first() else { return Ok(()) };
    let size = meter.measure(value, Namespaces::Read)?;
    let rounds = u64::from(value.len().unwrap_or(0).max(2).ilog2());
    meter.charge(size.work().saturating_mul(rounds))
}

/// For filters that apply another filter or a test to each element.
fn each(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    let Some((value, others)) = args.split_first() else { return Ok(()) };
    meter.measure(value, Namespaces::Read)?;
    let mut each = 0;
    for other in others {
        each += meter.measure(other, Namespaces::Read)?.work();
    }
    meter.charge((1 + each).saturating_mul(value.len().unwrap_or(0) as u64))
}

fn replace(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    deep(meter, args)?;
    let texts: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
    if let [text, from, to, ..] = texts[..] {
        let count = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
        check_size(meter, text.len() as u64 + count as u64 * to.len() as u64)?;
    }
    Ok(())
}

fn join(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    deep(meter, args)?;
    let between = args.get(1).and_then(Value::as_str).map_or(0, str::len) as u64;
    let count = args.first().and_then(Value::len).unwrap_or(0) as u64;
    check_size(meter, between.saturating_mul(count))
}

fn indent(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    deep(meter, args)?;
    let named = args.last().filter(|last| last.kind() == ValueKind::Map);
    let named = named.and_then(|named| named.get_attr("width").ok());
    let width = args.get(1).and_then(Value::as_usize).or_else(|| named?.as_usize()).unwrap_or(4);
    if width > INDENT_MAX {
        return Err(exceeded(&format!("it indents by more than {INDENT_MAX}")));
    }
    let lines = args.first().and_then(Value::as_str).map_or(0, |text| text.lines().count());
    check_size(meter, lines as u64 * width as u64)
}

fn check_size(meter: &Meter, bytes: u64) -> Result<(), Error> {
    if bytes > meter.value_max() {
        return Err(exceeded(&format!("a value has more than {} bytes", meter.value_max())));
    }
    Ok(())
}

fn check_method(
    meter: &Meter,
    (value, method): (&Value, &str),
    args: &[Value],
) -> Result<(), Error> {
    if value.kind() == ValueKind::Map {
        return shallow(meter, args);
    }
    let all: Vec<Value> = std::iter::once(value).chain(args).cloned().collect();
    match method {
        "replace" => replace(meter, &all),
        // The text joins the elements of its argument.
        "join" => join(meter, &[args.first().cloned().unwrap_or_default(), value.clone()]),
        "format" => {
            deep(meter, &all)?;
            check_format(value.as_str().unwrap_or_default())
        }
        _ => deep(meter, &all),
    }
}

/// Refuses large widths, and widths that are arguments.
fn check_format(format: &str) -> Result<(), Error> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let is_wide = format.char_indices().any(|(at, _)| digits(&format[at..]) > WIDTH_DIGITS_MAX);
    let is_nested = format.split('{').skip(1).any(|field| {
        // Between `{` and the next `{` a field that is still open has a colon and no end.
        !field.is_empty() && !field.contains('}') && field.contains(':')
    });
    if is_wide || is_nested {
        return Err(exceeded("it formats a text with a width of more than 999"));
    }
    Ok(())
}

/// Refuses long date formats.
pub(super) fn check_date_format(format: &str) -> Result<(), Error> {
    if format.len() > DATE_FORMAT_MAX || check_format(format).is_err() {
        return Err(exceeded("it formats a date with a long format"));
    }
    Ok(())
}

/// Width of the filter `tojson`'s indent.
pub(super) fn json_indent(
    meter: &Meter,
    value: &Value,
    (indent, options): (Option<usize>, &Kwargs),
) -> Result<Option<usize>, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get::<Option<usize>>("indent")?,
    };
    if indent.is_some_and(|indent| indent > INDENT_MAX) {
        return Err(exceeded(&format!("it indents by more than {INDENT_MAX}")));
    }
    meter.measure(value, Namespaces::Read)?;
    Ok(indent)
}
