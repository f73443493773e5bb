/** State of the page. */

/**
 * @typedef {object} Place item under the pointer
 * @property {"span" | "gap" | "wait" | "counter"} what
 * @property {number} run
 * @property {number} index
 * @property {number} [time] of a counter
 */

/** @typedef {{ run: number, index: number }} SpanRef */

const state = {
  /** @type {Run[]} */
  runs: [],
  /** Earliest and latest time recorded, in ns. */
  from: 0,
  to: 1,
  /** Time in view, in ns from the first event of each run. */
  t0: 0,
  t1: 1,
  /** Size of the lanes' canvas in pixels, and its scroll offset. */
  width: 1,
  height: 1,
  scroll: 0,
  ratio: 1,
  /** @type {Filter} */
  filter: { lane: "", activity: "", request: null, layer: null, chunk: null },
  query: "",
  /** By run: the spans that pass the filter. @type {(Uint8Array | null)[]} */
  keep: [],
  /** What the colours of spans stand for. */
  coloring: "activity",
  /** @type {SpanClass[]} */
  spanClasses: [],
  /** By run: the class of each span. @type {Uint8Array[]} */
  classes: [],
  /** By run: the spans that match the search. @type {(Uint8Array | null)[]} */
  found: [],
  /** By run and row. @type {Track[][]} */
  rows: [],
  /** By run and row, during a search. @type {(Track[] | null)[]} */
  foundRows: [],
  /** All matches by time. @type {SpanRef[]} */
  matches: [],
  match: -1,
  shown: 0,
  total: 0,
  /** @type {"zoom" | "all" | "none"} */
  nested: "zoom",
  /** Lanes that are folded, as `run/lane`. @type {Set<string>} */
  folded: new Set(),
  critical: true,
  gaps: true,
  messages: true,
  /** @type {Place | null} */
  hover: null,
  /** @type {SpanRef | null} */
  pin: null,
  /** @type {{ from: number, to: number } | null} */
  selection: null,
  /** Position of the pointer in the canvas and in the window, if it is over the lanes.
   * @type {{ x: number, y: number, windowX: number, windowY: number } | null} */
  mouse: null,
  /** Time under the pointer. @type {number | null} */
  pointer: null,
  /** Numbers of items that the last frame showed. */
  drawn: { spans: 0, matches: 0, gaps: 0, boxes: 0, bars: 0, messages: 0, segments: 0, waits: 0 },
  /** The tab that is shown. */
  tab: "",
  drawings: 0,
  drawTime: 0,
};

let drawing = 0;

/** Draws before the next frame is shown. */
function redraw() {
  drawing ||= requestAnimationFrame(() => {
    drawing = 0;
    drawAll();
  });
}

/** Pixels per nanosecond. */
function scaleNow() {
  return state.width / (state.t1 - state.t0);
}

/**
 * Shows a range of time, limited to the recording and to one nanosecond per ten pixels.
 * @param {number} from
 * @param {number} to
 */
function show(from, to) {
  const all = state.to - state.from;
  const room = all * 0.02;
  const least = Math.min(all, Math.max(20, state.width / 10));
  const length = Math.min(all + 2 * room, Math.max(least, to - from));
  const middle = (from + to) / 2;
  const low = state.from - room;
  const high = state.to + room - length;
  state.t0 = Math.min(Math.max(middle - length / 2, low), Math.max(low, high));
  state.t1 = state.t0 + length;
  redraw();
}

/**
 * @param {number} factor below 1 to zoom in
 * @param {number} at time that stays in place
 */
function zoom(factor, at) {
  show(at - (at - state.t0) * factor, at + (state.t1 - at) * factor);
}

let gliding = 0;
/** Range at the end of a glide. @type {[number, number] | null} */
let goal = null;

/**
 * Moves to a range of time over a few frames, so that the eye can follow.
 * @param {number} from
 * @param {number} to
 */
function glide(from, to) {
  cancelAnimationFrame(gliding);
  goal = [from, to];
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return endGlide();
  const begin = performance.now();
  const { t0, t1 } = state;
  const step = () => {
    const part = Math.min(1, (performance.now() - begin) / 140);
    if (part === 1) return endGlide();
    const eased = 1 - (1 - part) ** 3;
    show(t0 + (from - t0) * eased, t1 + (to - t1) * eased);
    gliding = requestAnimationFrame(step);
  };
  step();
}

function endGlide() {
  cancelAnimationFrame(gliding);
  if (goal) show(goal[0], goal[1]);
  goal = null;
}

/** The range in view, or the range that a glide moves to. @returns {[number, number]} */
function target() {
  return goal ?? [state.t0, state.t1];
}
