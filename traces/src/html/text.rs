//! Text for the page: escaping, and numbers with units.

use std::fmt;

/// Text escaped so that it cannot leave its element or quoted attribute.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // HTML forbids these characters, and a parser may drop or change them.
                '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                    f.write_char('\u{fffd}')?;
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Three significant digits, or all digits before the decimal point.
pub(super) fn digits(value: f64) -> String {
    let size = value.abs();
    let after = match size {
        _ if size == 0.0 || size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.after$}")
}

/// A time in ns, shown in a suitable unit.
pub(super) fn nanos(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A size in bytes, shown in a suitable unit.
pub(super) fn bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A large count, with an SI prefix.
pub(super) fn count(value: f64, unit: &str) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G", "T", "P"]).trim_end().to_owned() + unit
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let (mut value, mut unit) = (value, 0);
    // A value that would be printed as 1000 of a unit is printed as 1 of the next.
    while value.abs() >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let number = if unit == 0 && value.fract() == 0.0 { value.to_string() } else { digits(value) };
    format!("{number}\u{a0}{}", units[unit])
}

/// A fraction of 1 as a percentage.
pub(super) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}\u{a0}%", share * 100.0) } else { "–".to_owned() }
}

/// An integer in groups of three digits.
pub(super) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped() {
        let text = Escaped("</script><!--\"'&\u{0}\u{85}").to_string();
        assert_eq!(text, "&lt;/script&gt;&lt;!--&quot;&#39;&amp;\u{fffd}\u{fffd}");
    }

    #[test]
    fn units_change_before_a_number_needs_four_digits() {
        assert_eq!(nanos(0.0), "0\u{a0}ns");
        assert_eq!(nanos(999.0), "999\u{a0}ns");
        assert_eq!(nanos(999.6), "1.00\u{a0}µs");
        assert_eq!(nanos(-1500.0), "-1.50\u{a0}µs");
        assert_eq!(nanos(123_456_789_012.0), "123\u{a0}s");
        assert_eq!(nanos(f64::NAN), "–");
        assert_eq!(bytes(1536.0), "1.50\u{a0}KiB");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(12), "12");
    }
}
