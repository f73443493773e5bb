/** Finds the item under the pointer. */

/** Largest distance of the pointer from a small span, in pixels. */
const REACH = 3;

/**
 * @param {number} x pixels from the canvas' left edge
 * @param {number} y pixels from its top
 * @returns {Place | null}
 */
function pick(x, y) {
  const at = state.scroll + y;
  const band = layout.bands.find((band) => at >= band.y && at < band.y + band.height);
  if (!band) return null;
  const time = state.t0 + x / scaleNow();
  const run = band.run.number;
  const row = band.rows.find((row) => at >= row.y && at < row.y + row.height);
  const tracks = row ? [state.foundRows[run]?.[row.row], state.rows[run][row.row]] : [];
  const spanWithin = (/** @type {number} */ reach) => {
    for (const track of tracks) {
      const index = track ? nearest(track, time, reach) : -1;
      if (index >= 0) return index;
    }
    return -1;
  };
  const near = REACH / scaleNow();
  const idle = row && row === band.rows[0] && state.gaps && !filtering();
  const gap = idle ? nearest(band.lane.gaps, time, 0) : -1;
  const { gaps } = band.run;
  // A gap that is wide enough to point at takes precedence over a span beside it.
  const large = gap >= 0 && gaps.end[gap] - gaps.start[gap] > 2 * near;
  const span = spanWithin(large ? 0 : near);
  if (span >= 0) return { what: "span", run, index: span };
  if (gap >= 0) return { what: "gap", run, index: gap };
  if (band.waitY >= 0 && at >= band.waitY - 1 && at < band.waitY + WAIT_HEIGHT + 1) {
    const { waits } = band.run;
    let best = -1;
    for (const wait of band.lane.waits) {
      if (waits.start[wait] - near <= time && time <= waits.end[wait] + near) best = wait;
    }
    if (best >= 0) return { what: "wait", run, index: best };
  }
  for (const { index, y } of band.counters) {
    if (at >= y && at < y + COUNTER_HEIGHT) return { what: "counter", run, index, time };
  }
  return null;
}

/**
 * The interval of a track at a time, or the closest one within reach.
 * @param {Track} track
 * @param {number} time
 * @param {number} reach
 * @returns {number} index of the item, below 0 for none
 */
function nearest(track, time, reach) {
  const at = firstAbove(track.end, time);
  if (at < track.id.length && track.start[at] <= time) return track.id[at];
  const after = at < track.id.length ? track.start[at] - time : Infinity;
  const before = at > 0 ? time - track.end[at - 1] : Infinity;
  if (Math.min(before, after) > reach) return -1;
  return track.id[before <= after ? at - 1 : at];
}
