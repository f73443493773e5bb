//! Measures the work, the output and the values of a template while it renders.
//!
//! The limits grow with the conversation: a template that reads every message a few times stays far
//! below them.

use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::value::{Object, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::checked::Checked;
use super::error::Exceeded;
use super::marks::Input;

/// Name of the variable that holds the meter.
pub(super) const METER: &str = "lapwing_meter";

/// Deepest nesting of a value.
const DEPTH_MAX: usize = 64;
/// Bytes of a text that count as one unit of work.
const UNIT_BYTES: u64 = 8;
/// Units of work of an element of a list, and of a pass through a loop.
const ELEMENT: u64 = 4;
const PASS: u64 = 32;

/// Limits of one rendering.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Instructions of the template engine.
    pub(super) fuel: u64,
    /// Units of work of operators, filters and methods: nanoseconds to tens of nanoseconds each.
    work: u64,
    /// Bytes of the texts in a value.
    value: u64,
    /// Bytes of all texts kept in variables.
    kept: u64,
    /// Bytes of the output, and of the output of macros.
    output: u64,
    /// Elements of a list, and all elements within a value.
    pub(super) items: u64,
}

/// Size of a value, with all that it contains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// Bytes of texts.
    pub(super) bytes: u64,
    /// Number of values.
    pub(super) items: u64,
}

impl Size {
    /// Units of work of reading it.
    pub(super) fn work(self) -> u64 {
        self.bytes / UNIT_BYTES + ELEMENT * self.items
    }
}

impl Limits {
    /// For a template and its input.
    pub(super) fn new(template: &Checked, input: &Input) -> Self {
        let texts = input.texts();
        let bytes = texts.iter().map(|text| text.len() as u64).sum::<u64>();
        let count = texts.len() as u64;
        let source = template.source.len() as u64;
        let input = Size { bytes, items: 4 * count };
        let pass = template.work.saturating_mul(1 + input.work());
        Self {
            fuel: 2_000_000 + 20_000 * count + 100 * bytes,
            work: 8_000_000 + 10_000 * count + pass.saturating_mul(16 + count).saturating_mul(4),
            value: (256 << 10) + 4 * bytes + 256 * count,
            kept: (64 << 20) + 256 * bytes,
            output: (1 << 20) + 8 * bytes + source * (8 + count),
            items: (16 << 10) + bytes + 16 * count,
        }
    }
}

/// The state of one rendering.
#[derive(Debug)]
pub(super) struct Meter {
    limits: Limits,
    work: AtomicU64,
    kept: AtomicU64,
    output: AtomicU64,
    /// Work of reading the largest value so far.
    largest: AtomicU64,
}

impl Object for Meter {}

/// Which values may contain a namespace: it can be changed after it was measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespaces {
    /// Only the value itself may be one.
    Itself,
    /// None.
    Refused,
    /// Any: the value is only read.
    Read,
}

impl Meter {
    pub(super) fn new(limits: Limits, input: &Input) -> Self {
        let largest = input.texts().iter().map(|text| text.len() as u64).max().unwrap_or(0);
        let largest = largest / UNIT_BYTES;
        Self {
            limits,
            work: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            output: AtomicU64::new(0),
            largest: AtomicU64::new(largest),
        }
    }

    /// Counts units of work.
    pub(super) fn charge(&self, units: u64) -> Result<(), Error> {
        let sum = self.work.fetch_add(units, Ordering::Relaxed).saturating_add(units);
        if sum > self.limits.work {
            // Stays exceeded: a sum must not wrap around.
            self.work.store(self.limits.work, Ordering::Relaxed);
            return Err(exceeded("it takes too much time"));
        }
        Ok(())
    }

    /// Counts a pass of a loop body or macro: the work of its operators, and the text that it writes.
    pub(super) fn step(&self, work: u64, bytes: u64) -> Result<(), Error> {
        let size = self.largest.load(Ordering::Relaxed);
        self.charge(PASS + work.saturating_mul(1 + size))?;
        self.emit(bytes)
    }

    /// Counts bytes of output.
    pub(super) fn emit(&self, bytes: u64) -> Result<(), Error> {
        let sum = self.output.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if sum > self.limits.output {
            return Err(exceeded(&format!("it writes more than {} bytes", self.limits.output)));
        }
        Ok(())
    }

    /// Measures a value that a variable keeps.
    pub(super) fn keep(&self, value: &Value, namespaces: Namespaces) -> Result<(), Error> {
        let size = self.measure(value, namespaces)?;
        let bytes = size.bytes;
        self.largest.fetch_max(size.work(), Ordering::Relaxed);
        if value.kind() == ValueKind::String {
            let sum = self.kept.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
            if sum > self.limits.kept {
                return Err(exceeded(&format!("it keeps more than {} bytes", self.limits.kept)));
            }
        }
        Ok(())
    }

    /// Counts the work of reading a value.
    pub(super) fn read(&self, value: &Value) -> Result<(), Error> {
        self.measure(value, Namespaces::Read).map(drop)
    }

    /// Size of a value that is only read; counts the work.
    pub(super) fn measure_read(&self, value: &Value) -> Result<Size, Error> {
        self.measure(value, Namespaces::Read)
    }

    /// Refuses a text of so many bytes.
    pub(super) fn check_size(&self, bytes: u64) -> Result<(), Error> {
        if bytes > self.limits.value {
            return Err(exceeded(&format!("a value has more than {} bytes", self.limits.value)));
        }
        Ok(())
    }

    /// Refuses so many elements.
    pub(super) fn check_items(&self, items: u64) -> Result<(), Error> {
        if items > self.limits.items {
            return Err(self.too_many_items());
        }
        Ok(())
    }

    /// Size of a value; counts the work of reading it.
    pub(super) fn measure(&self, value: &Value, namespaces: Namespaces) -> Result<Size, Error> {
        let mut size = Size::default();
        self.add(value, namespaces, 0, &mut size)?;
        Ok(size)
    }

    fn add(
        &self,
        value: &Value,
        namespaces: Namespaces,
        depth: usize,
        size: &mut Size,
    ) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(exceeded(&format!("it nests values more than {DEPTH_MAX} deep")));
        }
        if is_namespace(value) {
            match namespaces {
                Namespaces::Itself if depth == 0 => return Ok(()),
                Namespaces::Read => {}
                _ => return Err(exceeded("it stores a namespace within another value")),
            }
        }
        let kind = value.kind();
        let own = Size { bytes: value.as_str().map_or(0, str::len) as u64, items: 1 };
        self.charge(own.work())?;
        size.bytes += own.bytes;
        size.items += own.items;
        self.check_size(size.bytes)?;
        self.check_items(size.items)?;
        if matches!(kind, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
            self.check_length(value)?;
            for item in value.try_iter()? {
                if kind == ValueKind::Map {
                    let of_key = value.get_item(&item)?;
                    self.add(&of_key, namespaces, depth + 1, &mut *size)?;
                }
                self.add(&item, namespaces, depth + 1, &mut *size)?;
            }
        }
        Ok(())
    }

    /// Refuses long lists.
    pub(super) fn check_length(&self, value: &Value) -> Result<(), Error> {
        match value.len() {
            Some(length) => self.check_items(length as u64),
            None => Ok(()),
        }
    }

    fn too_many_items(&self) -> Error {
        exceeded(&format!("a value has more than {} elements", self.limits.items))
    }
}

/// Whether a value is a namespace, the only value of a template that can change.
fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// Calls `f` with the meter of the rendering.
pub(super) fn metered<T>(
    state: &State<'_, '_>,
    f: impl FnOnce(&Meter) -> Result<T, Error>,
) -> Result<T, Error> {
    let meter = state.lookup(METER);
    match meter.as_ref().and_then(|meter| meter.downcast_object_ref::<Meter>()) {
        Some(meter) => f(meter),
        None => Err(exceeded("it hides the meter of its work")),
    }
}

/// The error of a limit that was exceeded.
pub(super) fn exceeded(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.to_owned()).with_source(Exceeded(what.to_owned()))
}
