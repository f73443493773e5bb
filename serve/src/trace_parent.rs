//! The header `traceparent` of the W3C's specification "Trace Context": the trace of a caller, and its span there.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use tracing::Span;

/// Name of the header.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The place of a request in its caller's trace, as the header `traceparent` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent {
    trace_id: String,
    parent_id: String,
    is_sampled: bool,
}

/// Bytes of a header of version 0, of which later ones are continuations.
const LENGTH: usize = 55;

impl TraceParent {
    /// Reads the value of a header. `None` for one that the specification has ignored: of a wrong form, with upper-case
    /// digits, with an id of zeros, or of version `ff`. Of later versions, the parts that version 0 has are read.
    pub fn parse(value: &str) -> Option<TraceParent> {
        let (known, rest) = value.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let (version, trace_id) = (parts.next()?, parts.next()?);
        let (parent_id, flags) = (parts.next()?, parts.next()?);
        let is_whole = match version {
            "00" => rest.is_empty(),
            "ff" => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let is_valid = is_whole
            && is_hex(version, 2)
            && is_hex(trace_id, 32)
            && is_hex(parent_id, 16)
            && is_hex(flags, 2)
            && [trace_id, parent_id].iter().all(|id| id.bytes().any(|digit| digit != b'0'));
        let flags = u8::from_str_radix(flags, 16).ok().filter(|_| is_valid)?;
        let (trace_id, parent_id) = (trace_id.to_owned(), parent_id.to_owned());
        Some(TraceParent { trace_id, parent_id, is_sampled: flags & 1 == 1 })
    }

    /// That of a request. Several headers are as wrong as none.
    pub(crate) fn of(headers: &HeaderMap) -> Option<TraceParent> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        TraceParent::parse(value.to_str().ok()?)
    }

    /// Id of the trace: 32 lower-case hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }

    /// Id of the caller's span: 16 lower-case hexadecimal digits.
    pub fn parent_id(&self) -> &str {
        &self.parent_id
    }

    /// Whether the caller may have recorded its part of the trace.
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }
}

impl fmt::Display for TraceParent {
    /// The header's value, of version 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceParent { trace_id, parent_id, is_sampled } = self;
        write!(f, "00-{trace_id}-{parent_id}-{:02x}", u8::from(*is_sampled))
    }
}

/// Whether a text is so many lower-case hexadecimal digits.
fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// What a program does with the span of a request that has a place in its caller's trace.
#[derive(Clone, Default)]
pub(crate) struct Adopt(pub(crate) Option<Arc<AdoptSpan>>);

/// Gets the span of a request, before it is entered, and its place.
type AdoptSpan = dyn Fn(&Span, &TraceParent) + Send + Sync;

impl fmt::Debug for Adopt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Adopt").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::{TRACEPARENT, TraceParent};

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_wrong_header_is_ignored() {
        let zeros = ["0".repeat(32), "0".repeat(16)];
        let upper = TRACE.to_uppercase();
        let rows = [
            ("sampled", format!("00-{TRACE}-{SPAN}-01"), Some(true)),
            ("not sampled", format!("00-{TRACE}-{SPAN}-00"), Some(false)),
            ("flags of later versions", format!("00-{TRACE}-{SPAN}-ff"), Some(true)),
            ("other flags only", format!("00-{TRACE}-{SPAN}-fe"), Some(false)),
            ("a later version", format!("cc-{TRACE}-{SPAN}-01"), Some(true)),
            ("a later version that goes on", format!("cc-{TRACE}-{SPAN}-01-what"), Some(true)),
            ("a later version without a dash", format!("cc-{TRACE}-{SPAN}-01what"), None),
            ("version 0 that goes on", format!("00-{TRACE}-{SPAN}-01-what"), None),
            ("version 0 with a dash", format!("00-{TRACE}-{SPAN}-01-"), None),
            ("the forbidden version", format!("ff-{TRACE}-{SPAN}-01"), None),
            ("a version of one digit", format!("0-{TRACE}-{SPAN}-01"), None),
            ("a version that is no number", format!("0x-{TRACE}-{SPAN}-01"), None),
            ("upper-case digits", format!("00-{upper}-{SPAN}-01"), None),
            ("no hexadecimal digit", format!("00-{}-{SPAN}-01", TRACE.replace('4', "g")), None),
            ("a trace of zeros", format!("00-{}-{SPAN}-01", zeros[0]), None),
            ("a span of zeros", format!("00-{TRACE}-{}-01", zeros[1]), None),
            ("a short trace", format!("00-{}-{SPAN}-01", &TRACE[1..]), None),
            ("a short trace and a long span", format!("00-{}-0{SPAN}-01", &TRACE[1..]), None),
            ("no flags", format!("00-{TRACE}-{SPAN}"), None),
            ("flags of one digit", format!("00-{TRACE}-{SPAN}-1"), None),
            ("other separators", format!("00_{TRACE}_{SPAN}_01"), None),
            ("a space", format!(" 00-{TRACE}-{SPAN}-01"), None),
            ("no ASCII", format!("00-{TRACE}-{SPAN}-0é"), None),
            ("nothing", String::new(), None),
        ];
        for (name, value, sampled) in rows {
            let parsed = TraceParent::parse(&value);
            assert_eq!(parsed.as_ref().map(TraceParent::is_sampled), sampled, "{name}: {value}");
            let Some(parsed) = parsed else { continue };
            assert_eq!((parsed.trace_id(), parsed.parent_id()), (TRACE, SPAN), "{name}");
            assert_eq!(TraceParent::parse(&parsed.to_string()), Some(parsed), "{name}");
        }
    }

    #[test]
    fn several_headers_are_ignored() {
        let mut headers = HeaderMap::new();
        assert_eq!(TraceParent::of(&headers), None);
        let value = HeaderValue::try_from(format!("00-{TRACE}-{SPAN}-01")).expect("a value");
        headers.append(TRACEPARENT, value.clone());
        assert!(TraceParent::of(&headers).is_some());
        headers.append(TRACEPARENT, value);
        assert_eq!(TraceParent::of(&headers), None);
    }
}
