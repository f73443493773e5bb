/** Formats numbers with units. */

const NO_BREAK = "\u00a0";

/** @param {number} value */
function threeDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/**
 * @param {number} value
 * @param {number} step between two units
 * @param {string[]} units
 */
function scaled(value, step, units) {
  if (!Number.isFinite(value)) return "–";
  let unit = 0;
  while (Math.abs(value) >= step - 0.5 && unit + 1 < units.length) {
    value /= step;
    unit += 1;
  }
  const number = unit === 0 && Number.isInteger(value) ? String(value) : threeDigits(value);
  return units[unit] === "" ? number : number + NO_BREAK + units[unit];
}

/** @param {number} ns */
function formatTime(ns) {
  return scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
}

/** @param {number} bytes */
function formatBytes(bytes) {
  return scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
}

/** @param {number} value */
function formatCount(value) {
  return scaled(value, 1000, ["", "k", "M", "G", "T", "P"]);
}

/** @param {number} value */
function formatGrouped(value) {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** @param {number} share */
function formatShare(share) {
  return Number.isFinite(share) ? (share * 100).toFixed(1) + NO_BREAK + "%" : "–";
}

/**
 * A point in time, with the digits that tell it from one that is `step` ns away.
 * @param {number} ns
 * @param {number} [step] at least 1
 */
function formatMoment(ns, step = 1) {
  const digits = Math.min(6, Math.max(0, 6 - Math.floor(Math.log10(Math.max(1, step)))));
  const unit = 10 ** (6 - digits);
  const size = Math.abs(Math.round(ns / unit)) * unit;
  const sign = ns < 0 && size > 0 ? "−" : "";
  const whole = formatGrouped(Math.floor(size / 1e6));
  const rest = String(size % 1e6)
    .padStart(6, "0")
    .slice(0, digits);
  const parts = [rest.slice(0, 3), rest.slice(3)].filter((part) => part !== "");
  const after = parts.length > 0 ? `.${parts.join("\u202f")}` : "";
  return `${sign}${whole}${after}${NO_BREAK}ms`;
}
