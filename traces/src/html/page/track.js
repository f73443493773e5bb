/** Sorted, disjoint intervals with prefix sums: lookups and sums take logarithmic time. */

/** Number of density levels. */
const LEVELS = 10;

/**
 * @typedef {object} Track
 * @property {Float64Array} start
 * @property {Float64Array} end
 * @property {Int32Array} id
 * @property {Uint8Array} kind
 * @property {(Float64Array | null)[]} sums by kind: total time of that kind before each interval
 */

/**
 * @param {Int32Array} id by time
 * @param {(id: number) => number} startOf
 * @param {(id: number) => number} endOf
 * @param {(id: number) => number} kindOf
 * @returns {Track}
 */
function makeTrack(id, startOf, endOf, kindOf) {
  const count = id.length;
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const kind = new Uint8Array(count);
  /** @type {(Float64Array | null)[]} */
  const sums = [];
  for (let i = 0; i < count; i++) {
    start[i] = startOf(id[i]);
    end[i] = endOf(id[i]);
    kind[i] = kindOf(id[i]);
    while (sums.length <= kind[i]) sums.push(null);
    sums[kind[i]] ??= new Float64Array(count + 1);
  }
  for (let k = 0; k < sums.length; k++) {
    const sum = sums[k];
    if (!sum) continue;
    for (let i = 0; i < count; i++) {
      sum[i + 1] = sum[i] + (kind[i] === k ? end[i] - start[i] : 0);
    }
  }
  return { start, end, id, kind, sums };
}

/**
 * First index, at or after `low`, of a value above `limit`.
 * @param {Float64Array} values ascending
 * @param {number} limit
 */
function firstAbove(values, limit, low = 0) {
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * First index, at or after `low`, of a value not below `limit`.
 * @param {Float64Array} values ascending
 * @param {number} limit
 */
function firstFrom(values, limit, low = 0) {
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] >= limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Time within a range that is covered by intervals of the track, of one kind or of all.
 * @param {Track} track
 * @param {number} from
 * @param {number} to
 * @param {number} [only]
 */
function timeWithin(track, from, to, only) {
  const first = firstAbove(track.end, from);
  const stop = firstFrom(track.start, to);
  if (first >= stop) return 0;
  let time = 0;
  track.sums.forEach((sum, kind) => {
    if (!sum || (only !== undefined && only !== kind)) return;
    time += sum[stop] - sum[first];
    if (track.kind[first] === kind) time -= Math.max(0, from - track.start[first]);
    if (track.kind[stop - 1] === kind) time -= Math.max(0, track.end[stop - 1] - to);
  });
  return time;
}

/**
 * @typedef {object} Brush draws the intervals of a track that are in view
 * @property {(x0: number, x1: number, index: number) => void} box an interval of a pixel or more
 * @property {(x: number, width: number, kind: number, level: number) => void} density several
 *   small ones; the level from 1 to LEVELS says how much of the time they fill
 */

/**
 * Draws a track; intervals narrower than a pixel are merged. The cost grows with pixels, not intervals.
 * @param {Track} track
 * @param {number} from time at the left edge
 * @param {number} to time at the right edge
 * @param {number} scale pixels per ns
 * @param {Brush} brush
 * @returns {number} how many intervals are in view
 */
function paintTrack(track, from, to, scale, brush) {
  const { start, end } = track;
  let at = firstAbove(end, from);
  const stop = firstFrom(start, to);
  const count = Math.max(0, stop - at);
  let runX = 0;
  let runWidth = 0;
  let runKind = -1;
  let runLevel = 0;
  while (at < stop) {
    const x0 = (start[at] - from) * scale;
    const x1 = (end[at] - from) * scale;
    if (x1 - x0 >= 1) {
      brush.box(x0, x1, at);
      at += 1;
      continue;
    }
    const pixel = Math.floor(x0);
    let next = Math.min(stop, firstFrom(start, from + (pixel + 1) / scale, at + 1));
    // The last interval of a pixel may be a wide one that starts in it.
    if (next > at + 1 && (end[next - 1] - start[next - 1]) * scale >= 1) next -= 1;
    let kind = 0;
    let most = -1;
    let busy = 0;
    for (let k = 0; k < track.sums.length; k++) {
      const sum = track.sums[k];
      if (!sum) continue;
      const time = sum[next] - sum[at];
      busy += time;
      // Intervals without length are drawn with the kind of the first one.
      if (time > most && (time > 0 || k === track.kind[at])) {
        most = time;
        kind = k;
      }
    }
    const level = Math.max(1, Math.min(LEVELS, Math.ceil(busy * scale * LEVELS)));
    if (runKind === kind && runLevel === level && runX + runWidth === pixel) {
      runWidth += 1;
    } else {
      if (runKind >= 0) brush.density(runX, runWidth, runKind, runLevel);
      runX = pixel;
      runWidth = 1;
      runKind = kind;
      runLevel = level;
    }
    at = next;
  }
  if (runKind >= 0) brush.density(runX, runWidth, runKind, runLevel);
  return count;
}
