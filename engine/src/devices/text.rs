//! Reads and writes the values of a device's keys: numbers, times, sizes.

use std::time::Duration;

use lapwing_kernels::part::Share;

use super::powers_of_two;

/// Accepted times.
pub(super) const TIME: &str = "a time of at most a minute such as 0, 15us, 1.5ms or 2s";
/// Accepted rates.
pub(super) const RATE: &str = "a positive number of at least 0.001, such as 40 or 2.5";
/// Smallest rate: a slower device would take hours for an op, and its times could overflow.
pub(super) const RATE_MIN: f64 = 0.001;
/// Accepted numbers of bytes.
pub(super) const BYTES: &str = "a number of bytes such as 64MiB or 1GiB";
/// Accepted sides of an array.
pub(super) const CELLS: &str = "1, 2, 4, 8, 16 or 32 cells along a side";
/// Accepted graph sizes.
pub(super) const SIZES: &str = "multiples of 32 rows up to 65536, or powers of two below 32: powers of two in a range such as 1-1024, or a list such as 1/32/256";

/// Parses a rate.
pub(super) fn rate(text: &str) -> Option<f64> {
    text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= RATE_MIN)
}

/// Parses a fraction.
pub(super) fn share(text: &str) -> Option<f64> {
    text.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0)
}

/// Whether a graph can have that many rows with any array size.
pub(super) fn is_size(rows: usize) -> bool {
    let small = rows < Share::ALIGN && rows.is_power_of_two();
    (small || rows.is_multiple_of(Share::ALIGN)) && (1..=1 << 16).contains(&rows)
}

/// Parses the cells along a side of an array.
pub(super) fn cells(text: &str) -> Option<usize> {
    text.parse().ok().filter(|cells| is_array(*cells))
}

/// Whether an array with that many cells along a side can run graphs of every size.
pub(super) fn is_array(cells: usize) -> bool {
    cells > 0 && Share::ALIGN.is_multiple_of(cells)
}

/// Parses a time with its unit.
pub(super) fn time(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (number, scale) = ["ns", "us", "ms", "s"]
        .iter()
        .zip([1e-9, 1e-6, 1e-3, 1.0])
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    let seconds = number.parse::<f64>().ok()? * scale;
    (0.0..=60.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// Text that parses to the same time.
pub(super) fn write_time(time: Duration) -> String {
    let nanos = time.as_nanos();
    match nanos {
        0 => "0".to_owned(),
        _ if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1000) => format!("{}us", nanos / 1000),
        _ => format!("{nanos}ns"),
    }
}

/// Parses a number of bytes, with or without a unit.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("B", 0)]
        .iter()
        .find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, 1_u64 << bits)))
        .unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

/// Text that parses to the same number of bytes.
pub(super) fn write_bytes(bytes: u64) -> String {
    for (unit, bits) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes.is_multiple_of(1 << bits) {
            return format!("{}{unit}", bytes >> bits);
        }
    }
    bytes.to_string()
}

/// Parses graph sizes: `32-1024` or `32/64/256`, ascending.
pub(super) fn sizes(text: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.parse::<usize>().ok();
    let size = |text: &str| number(text).filter(|size| is_size(*size));
    let mut sizes = match text.split_once('-') {
        Some((from, to)) => powers_of_two(number(from)?, number(to)?),
        None => text.split('/').map(size).collect::<Option<Vec<usize>>>()?,
    };
    sizes.sort_unstable();
    sizes.dedup();
    (!sizes.is_empty() && sizes.iter().all(|size| is_size(*size))).then_some(sizes)
}

/// Text that parses to the same sizes.
pub(super) fn write_sizes(sizes: &[usize]) -> String {
    if let [first, .., last] = sizes
        && powers_of_two(*first, *last) == sizes
    {
        return format!("{first}-{last}");
    }
    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
    sizes.join("/")
}
