//! The text formats of metrics, and which of them a client wants.

use axum::http::{HeaderMap, header};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus 0.0.4.
    Prometheus,
}

impl Format {
    /// The format that the header `Accept` prefers (RFC 9110, section 12.5.1). OpenMetrics if it prefers neither, or has
    /// only types that are not offered: a scraper gets metrics rather than an error.
    pub(crate) fn of(headers: &HeaderMap) -> Format {
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<Range<'_>> =
            values.flat_map(|value| value.split(',')).filter_map(Range::read).collect();
        let quality = |format| Range::quality(&ranges, format);
        match quality(Format::Prometheus) > quality(Format::OpenMetrics) {
            true => Format::Prometheus,
            false => Format::OpenMetrics,
        }
    }

    /// Type of the body.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Its type, its subtype, and the versions that a client may ask for.
    fn offer(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            // What 1.0.0 writes, a reader of 0.0.1 understands.
            Format::OpenMetrics => ("application", "openmetrics-text", &["1.0.0", "0.0.1"]),
            Format::Prometheus => ("text", "plain", &["0.0.4"]),
        }
    }
}

/// A range of types that a client accepts.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    version: Option<&'a str>,
    /// 0 to 1; 0 is refused.
    quality: f32,
}

impl<'a> Range<'a> {
    /// Reads one member of the header; `None` if it is no range of types.
    fn read(text: &'a str) -> Option<Range<'a>> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut range = Range { kind, subtype, version: None, quality: 1.0 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim() {
                name if name.eq_ignore_ascii_case("q") => {
                    range.quality = value.parse().ok().filter(|q| (0.0..=1.0).contains(q))?;
                }
                name if name.eq_ignore_ascii_case("version") => range.version = Some(value),
                _ => {}
            }
        }
        Some(range)
    }

    /// How exactly the range names `format`; `None` if it does not contain it.
    fn precision(&self, format: Format) -> Option<u8> {
        let (kind, subtype, versions) = format.offer();
        if self.kind == "*" && self.subtype == "*" {
            return Some(0);
        }
        if !self.kind.eq_ignore_ascii_case(kind) {
            return None;
        }
        match (self.subtype, self.version) {
            ("*", _) => Some(1),
            (other, _) if !other.eq_ignore_ascii_case(subtype) => None,
            (_, None) => Some(2),
            (_, Some(version)) => versions.contains(&version).then_some(3),
        }
    }

    /// The quality that the ranges give to `format`: that of the most exact one, of several equally exact ones the
    /// highest; 0 if none contains it.
    fn quality(ranges: &[Range<'_>], format: Format) -> f32 {
        let named =
            ranges.iter().filter_map(|range| Some((range.precision(format)?, range.quality)));
        let best = named.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        best.map_or(0.0, |(_, quality)| quality)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_client_gets_the_format_that_it_prefers() {
        let rows = [
            (None, Format::OpenMetrics),
            (Some(""), Format::OpenMetrics),
            (Some("*/*"), Format::OpenMetrics),
            (Some("application/json"), Format::OpenMetrics),
            (Some("application/openmetrics-text"), Format::OpenMetrics),
            (Some("text/plain"), Format::Prometheus),
            (Some("TEXT/Plain; Version=0.0.4"), Format::Prometheus),
            (Some("text/plain;version=\"0.0.4\""), Format::Prometheus),
            (Some("text/*"), Format::Prometheus),
            // A version that is not offered.
            (Some("text/plain;version=9.0"), Format::OpenMetrics),
            (Some("text/plain;q=0"), Format::OpenMetrics),
            (Some("text/plain;q=0.5, */*;q=0.1"), Format::Prometheus),
            (Some("text/plain;q=0.5,application/openmetrics-text;q=0.4"), Format::Prometheus),
            (Some("application/openmetrics-text;q=0, */*"), Format::Prometheus),
            (Some("text/html,application/xml;q=0.9,*/*;q=0.8"), Format::OpenMetrics),
            // What Prometheus 2 and 3 send, and Prometheus 3 with the classic format chosen.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                     text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                ),
                Format::OpenMetrics,
            ),
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                     application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                     text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                ),
                Format::OpenMetrics,
            ),
            (
                Some(
                    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.2",
                ),
                Format::Prometheus,
            ),
        ];
        for (accept, format) in rows {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(Format::of(&headers), format, "{accept:?}");
        }
    }
}
