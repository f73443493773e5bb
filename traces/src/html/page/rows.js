/** Lays out lanes, rows and charts. */

const OUTER_HEIGHT = 20;
const INNER_HEIGHT = 17;
/** Largest factor by which rows grow where there is room. */
const GROWTH_MAX = 1.6;
const WAIT_HEIGHT = 8;
const COUNTER_HEIGHT = 30;
const LANE_LEAST = 40;
const PAD = 7;

/**
 * @typedef {object} Row
 * @property {number} row number in the run
 * @property {number} level
 * @property {number} y
 * @property {number} height
 */

/**
 * @typedef {object} Band a lane on the page
 * @property {Run} run
 * @property {LaneRun} lane
 * @property {number} y
 * @property {number} height
 * @property {Row[]} rows
 * @property {number} levels shown
 * @property {number} waitY below 0 for none
 * @property {{ index: number, y: number }[]} counters
 */

const layout = {
  /** @type {Band[]} */
  bands: [],
  /** Titles of runs. @type {{ run: Run, y: number }[]} */
  titles: [],
  height: 0,
  /** State for which the layout was computed. */
  key: "",
};

/**
 * Number of nesting levels of a lane that are shown at a scale: those whose spans are wide enough.
 * @param {Run} run
 * @param {LaneRun} lane
 * @param {number} scale
 */
function levelsShown(run, lane, scale) {
  if (state.nested === "none" || state.folded.has(`${run.number}/${lane.index}`)) return 1;
  // Matches of a filter or a search are shown however small they are.
  if (state.nested === "all" || filtering() || state.foundRows[run.number]) return Infinity;
  let levels = 1;
  while (levels < lane.medians.length && lane.medians[levels] * scale >= 2.5) levels += 1;
  return levels;
}

/** Recomputes the layout if something that it depends on has changed. */
function layOut() {
  const scale = scaleNow();
  const lanes = state.runs.flatMap((run) =>
    run.inOrder
      .filter(({ name }) => !state.filter.lane || name === state.filter.lane)
      .map((lane) => ({ run, lane, levels: levelsShown(run, lane, scale) })),
  );
  const key = lanes.map(({ run, lane, levels }) => `${run.number}/${lane.index}/${levels}`).join();
  if (key === layout.key) return false;
  layout.key = key;
  layout.bands = [];
  layout.titles = [];
  const growth = growthOf(lanes);
  let y = 0;
  let before = -1;
  for (const { run, lane, levels } of lanes) {
    if (state.runs.length > 1 && run.number !== before) {
      layout.titles.push({ run, y });
      y += 26;
      before = run.number;
    }
    const band = makeBand({ run, lane, levels, growth }, y);
    layout.bands.push(band);
    y += band.height;
  }
  layout.height = y + 12;
  return true;
}

/**
 * Factor by which rows can grow when all levels are unfolded. It does not depend on the scale, so
 * rows keep their size when the scale changes.
 * @param {{ run: Run, lane: LaneRun }[]} lanes
 */
function growthOf(lanes) {
  let fixed = 12 + 26 * (state.runs.length - 1);
  let rows = 0;
  for (const { run, lane } of lanes) {
    const band = makeBand({ run, lane, levels: Infinity, growth: 1 }, 0);
    const height = band.rows.reduce((sum, row) => sum + row.height, 0);
    rows += height;
    fixed += band.height - height;
  }
  const growth = (state.height - fixed) / Math.max(1, rows);
  return Math.min(GROWTH_MAX, Math.max(1, growth));
}

/**
 * @param {{ run: Run, lane: LaneRun, levels: number, growth: number }} of
 * @param {number} top
 * @returns {Band}
 */
function makeBand({ run, lane, levels, growth }, top) {
  let y = top + PAD;
  /** @type {Row[]} */
  const rows = [];
  for (let slot = 0; slot + 1 < lane.slotRows.length; slot++) {
    const first = lane.slotRows[slot];
    const shown = Math.min(levels, lane.slotRows[slot + 1] - first);
    for (let level = 0; level < shown; level++) {
      const height = Math.round((level === 0 ? OUTER_HEIGHT : INNER_HEIGHT) * growth);
      rows.push({ row: first + level, level, y, height });
      y += height + 1;
    }
    y += 2;
  }
  let waitY = -1;
  if (lane.waits.length > 0) {
    waitY = y;
    y += WAIT_HEIGHT + 2;
  }
  const counters = lane.counters.map((index) => {
    y += 2;
    const at = y;
    y += COUNTER_HEIGHT;
    return { index, y: at };
  });
  const height = Math.max(LANE_LEAST, y + PAD - top);
  return { run, lane, y: top, height, rows, levels, waitY, counters };
}

/**
 * @param {number} run
 * @param {number} lane
 */
function bandOf(run, lane) {
  return layout.bands.find((band) => band.run.number === run && band.lane.index === lane);
}

/**
 * Row of a span, or of its deepest ancestor that is shown.
 * @param {Band} band
 * @param {number} span
 */
function rowOf(band, span) {
  const { spans } = band.run;
  for (let at = span; at >= 0; at = spans.parent[at]) {
    const row = band.rows.find((row) => row.row === spans.row[at]);
    if (row) return row;
  }
  return band.rows[0];
}
