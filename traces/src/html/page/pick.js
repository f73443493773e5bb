/** What lies under the pointer. */

/** How far beside a small span the pointer may be, in pixels. */
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
  if (row) {
    const tracks = state.foundRows[run] ?? state.rows[run];
    let index = nearest(tracks[row.row], time);
    if (index < 0) index = nearest(state.rows[run][row.row], time);
    if (index >= 0) return { what: "span", run, index };
  }
  if (band.rows.length > 0 && at >= band.rows[0].y && at < band.rows[0].y + band.rows[0].height) {
    const index = state.gaps && !filtering() ? nearest(band.lane.gaps, time) : -1;
    if (index >= 0) return { what: "gap", run, index };
  }
  if (band.waitY >= 0 && at >= band.waitY - 1 && at < band.waitY + WAIT_HEIGHT + 1) {
    const { waits } = band.run;
    const near = REACH / scaleNow();
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
 * @returns {number} what it stands for, below 0 for none
 */
function nearest(track, time) {
  const reach = REACH / scaleNow();
  const at = firstAbove(track.end, time);
  if (at < track.id.length && track.start[at] <= time) return track.id[at];
  const after = at < track.id.length ? track.start[at] - time : Infinity;
  const before = at > 0 ? time - track.end[at - 1] : Infinity;
  if (Math.min(before, after) > reach) return -1;
  return track.id[before <= after ? at - 1 : at];
}
