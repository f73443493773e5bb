//! The filters, tests, functions and methods of templates, with their work measured. Their parameters are those of
//! Jinja2.

mod lists;
mod markup;
mod numbers;
mod operators;
mod order;
mod texts;
mod wrap;

use minijinja::value::{FunctionResult, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value, filters, functions, tests};

use super::arguments::Arguments;
use super::meter::{Meter, Namespaces, metered};
use super::names::{BOUND, KEPT, STEP};
use super::{globals, json, python};
pub(super) use wrap::indentation;

/// Checks the operands of a filter before it runs.
type Check = fn(&Meter, &[Value]) -> Result<(), Error>;

/// A filter of ours: the value and its arguments, which have been read.
type Filter = fn(&Meter, &Value, &Arguments) -> Result<Value, Error>;

/// Adds everything that a template may call.
pub(super) fn add_all(environment: &mut Environment<'_>) {
    add_own(environment);
    operators::add_all(environment);
    add_engines(environment);
    add_filters(environment);
    add_tests(environment);
    environment.set_unknown_method_callback(|state, value, method, args| {
        python::call_method(state, value, method, args)
    });
    add_function(environment, "range", Value::from_function(functions::range));
    add_function(environment, "dict", Value::from_function(lists::dict));
    add_function(environment, "namespace", Value::from_function(namespace));
    add_function(environment, "cycler", Value::from_function(globals::cycler));
    add_function(environment, "joiner", Value::from_function(globals::joiner));
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
}

/// Filters of the template engine that behave as Jinja2's.
fn add_engines(environment: &mut Environment<'_>) {
    let mut add = |name: &'static str, filter: Value, check: Check| {
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            metered(state, |meter| check(meter, &args))?;
            filter.call(state, &args)
        });
    };
    add("length", Value::from_function(lists::length), shallow);
    add("count", Value::from_function(lists::length), shallow);
    add("first", Value::from_function(filters::first), shallow);
    add("list", Value::from_function(filters::list), list);
    add("reverse", Value::from_function(lists::reverse), deep);
    add("safe", Value::from_function(filters::safe), deep);
    add("bool", Value::from_function(filters::bool), shallow);
    add("abs", Value::from_function(filters::abs), shallow);
    add("lower", Value::from_function(filters::lower), deep);
    add("upper", Value::from_function(filters::upper), deep);
    add("split", Value::from_function(filters::split), deep);
    add("sum", Value::from_function(filters::sum), deep);
    // What is empty, 0, false or none has no elements for these.
    let mut add_each = |name: &'static str, filter: Value| {
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            if args.first().is_some_and(|value| !value.is_true()) {
                return Value::from(Vec::<Value>::new()).into_result();
            }
            metered(state, |meter| each(meter, &args))?;
            filter.call(state, &args)
        });
    };
    add_each("map", Value::from_function(filters::map));
    add_each("select", Value::from_function(filters::select));
    add_each("reject", Value::from_function(filters::reject));
    add_each("selectattr", Value::from_function(filters::selectattr));
    add_each("rejectattr", Value::from_function(filters::rejectattr));
    let round = Value::from_function(filters::round);
    environment.add_filter("round", move |state: &mut State, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        metered(state, |meter| shallow(meter, &args))?;
        let (value, rest) = args.split_first().ok_or_else(missing_value)?;
        // True and false are numbers.
        let is_bool = value.kind() == ValueKind::Bool;
        let mut all = vec![if is_bool { u8::from(value.is_true()).into() } else { value.clone() }];
        all.extend(Arguments::bind("round", &["precision", "method"], rest)?.positional());
        round.call(state, &all)
    });
}

/// Filters of ours, with their parameters.
fn add_filters(environment: &mut Environment<'_>) {
    let mut add = |name: &'static str, parameters: &'static [&'static str], filter: Filter| {
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            let (value, rest) = args.split_first().ok_or_else(missing_value)?;
            let bound = Arguments::bind(name, parameters, rest)?;
            metered(state, |meter| {
                deep(meter, &args)?;
                filter(meter, value, &bound)
            })
        });
    };
    add("default", &["default_value", "boolean"], lists::default);
    add("d", &["default_value", "boolean"], lists::default);
    add("items", &[], lists::items);
    add("last", &[], lists::last);
    add("attr", &["name"], lists::attr);
    add("batch", &["linecount", "fill_with"], lists::batch);
    add("slice", &["slices", "fill_with"], lists::slice);
    add("join", &["d", "attribute"], lists::join);
    add("sort", &["reverse", "case_sensitive", "attribute"], order::sort);
    add("dictsort", &["case_sensitive", "by", "reverse"], order::dictsort);
    add("groupby", &["attribute", "default", "case_sensitive"], order::groupby);
    add("unique", &["case_sensitive", "attribute"], order::unique);
    add("min", &["case_sensitive", "attribute"], order::least);
    add("max", &["case_sensitive", "attribute"], order::greatest);
    add("int", &["default", "base"], numbers::int);
    add("float", &["default"], numbers::float);
    add("filesizeformat", &["binary"], numbers::file_size);
    add("string", &[], texts::string);
    add("capitalize", &[], texts::capitalize);
    add("title", &[], texts::title);
    add("trim", &["chars"], texts::trim);
    add("replace", &["old", "new", "count"], texts::replace);
    add("center", &["width"], texts::center);
    add("truncate", &["length", "killwords", "end", "leeway"], texts::truncate);
    add("wordcount", &[], texts::wordcount);
    add("indent", &["width", "first", "blank"], wrap::indent);
    add(
        "wordwrap",
        &["width", "break_long_words", "wrapstring", "break_on_hyphens"],
        wrap::wordwrap,
    );
    add("pprint", &[], wrap::pprint);
    add("escape", &[], markup::escape);
    add("e", &[], markup::escape);
    add("forceescape", &[], markup::force_escape);
    add("striptags", &[], markup::strip_tags);
    add("urlencode", &[], markup::url_encode);
    add("xmlattr", &["autospace"], markup::attributes);
    add("tojson", &["ensure_ascii", "indent", "separators", "sort_keys"], json::to_json);
    environment.add_filter("format", |state: &mut State, args: Rest<ValueOrKwargs>| {
        texts::format(state, &args.into_values())
    });
}

fn missing_value() -> Error {
    Error::new(minijinja::ErrorKind::MissingArgument, "a filter needs a value")
}

fn add_tests(environment: &mut Environment<'_>) {
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("true", tests::is_true);
    environment.add_test("false", tests::is_false);
    environment.add_test("number", lists::is_number);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("float", tests::is_float);
    environment.add_test("string", tests::is_string);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("sequence", lists::is_sequence);
    environment.add_test("iterable", lists::is_iterable);
    environment.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
    environment.add_test("escaped", tests::is_safe);
    environment.add_test("sameas", tests::is_sameas);
    environment.add_test("filter", tests::is_filter);
    environment.add_test("test", tests::is_test);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("even", tests::is_even);
    environment.add_test("divisibleby", tests::is_divisibleby);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("lower", tests::is_lower);
    environment.add_test("upper", tests::is_upper);
    environment.add_test("in", |state: &State, value: &Value, among: &Value| {
        metered(state, |meter| meter.read(value).and_then(|()| meter.read(among)))?;
        tests::is_in(state, value, among)
    });
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

/// `namespace(dictionary, name=value, …)`.
fn namespace(args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    functions::namespace(Some(ValueOrKwargs::from(lists::dict(args)?)))
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
    meter.charge(super::meter::Size { bytes, items: 1 }.work())
}

/// For filters that read all of the value, and make no larger one.
fn deep(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    args.iter().try_for_each(|arg| meter.read(arg))
}

fn list(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    deep(meter, args)?;
    meter.check_items(args.first().and_then(Value::as_str).map_or(0, str::len) as u64)
}

/// For filters that apply another filter or a test to each element.
fn each(meter: &Meter, args: &[Value]) -> Result<(), Error> {
    let Some((value, others)) = args.split_first() else { return Ok(()) };
    meter.read(value)?;
    let mut each = 0;
    for other in others {
        each += meter.measure_read(other)?.work();
    }
    meter.charge((1 + each).saturating_mul(value.len().unwrap_or(0) as u64))
}
