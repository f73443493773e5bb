/** What the colours of spans stand for: activities, ops, layers, requests or drafts. */

/** @typedef {{ name: string, hue: Rgb, hatch: string, shades: number }} SpanClass */

/** @type {Record<string, () => Classes>} */
const COLORINGS = {
  activity: byActivity,
  op: byOp,
  layer: byLayer,
  request: byRequest,
  draft: byDraft,
};

/** Hues of ops and requests. @type {Rgb[]} */
const DISTINCT = [
  [0, 114, 178],
  [230, 159, 0],
  [0, 158, 115],
  [204, 121, 167],
  [86, 180, 233],
  [213, 94, 0],
  [240, 228, 66],
  [126, 87, 194],
  [141, 110, 99],
  [38, 166, 154],
  [124, 139, 40],
];

/** Hues of the first to the last layer, after viridis. @type {Rgb[]} */
const RAMP = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
];

/** Most classes of layers. */
const LAYER_CLASSES = 10;

/** @param {number} share of the way from the first to the last layer @returns {Rgb} */
function rampAt(share) {
  const at = share * (RAMP.length - 1);
  const low = Math.min(RAMP.length - 2, Math.floor(at));
  return mix(RAMP[low + 1], RAMP[low], at - low);
}

/** Classifies all spans anew. */
function classify() {
  const { classes, of } = COLORINGS[state.coloring]();
  state.spanClasses = classes;
  state.classes = state.runs.map((run) => {
    const kinds = new Uint8Array(run.spans.count);
    for (let i = 0; i < kinds.length; i++) kinds[i] = of(run, i);
    return kinds;
  });
}

/** @typedef {{ classes: SpanClass[], of: (run: Run, span: number) => number }} Classes */

/** @returns {Classes} */
function byActivity() {
  const classes = state.runs[0].head.activities.map((name) => ({
    name,
    hue: HUES[name] ?? HUES.other,
    hatch: WORK_HATCH[name] ?? "",
    shades: 3,
  }));
  return { classes, of: (run, i) => Math.min(run.spans.activity[i], classes.length - 1) };
}

/** @returns {Classes} */
function byLayer() {
  let count = 0;
  for (const { spans } of state.runs) {
    for (const layer of spans.layer) count = Math.max(count, layer);
  }
  const steps = Math.min(count, LAYER_CLASSES);
  const classes = Array.from({ length: steps }, (_, step) => {
    const first = Math.ceil((step * count) / steps);
    const last = Math.ceil(((step + 1) * count) / steps) - 1;
    const name = first === last ? `layer ${first}` : `layers ${first}–${last}`;
    return { name, hue: rampAt(steps > 1 ? step / (steps - 1) : 0), hatch: "", shades: 1 };
  });
  classes.push(others("no single layer"));
  const of = (/** @type {Run} */ run, /** @type {number} */ i) =>
    run.spans.layer[i] > 0 ? Math.floor(((run.spans.layer[i] - 1) * steps) / count) : steps;
  return { classes, of };
}

/** @param {string} name @returns {SpanClass} */
function others(name) {
  return { name, hue: HUES.other, hatch: "", shades: 1 };
}

/**
 * The ops with the most time get a class each, all others share the last one.
 * @returns {Classes}
 */
function byOp() {
  /** @type {Map<string, number>} */
  const times = new Map();
  for (const { head, spans } of state.runs) {
    for (let i = 0; i < spans.count; i++) {
      const name = head.names[spans.name[i]];
      times.set(name, (times.get(name) ?? 0) + spans.end[i] - spans.start[i]);
    }
  }
  const most = [...times].sort((a, b) => b[1] - a[1]).slice(0, DISTINCT.length);
  const classes = most.map(([name], i) => ({ name, hue: DISTINCT[i], hatch: "", shades: 1 }));
  classes.push(others("other ops"));
  const number = new Map(most.map(([name], i) => [name, i]));
  const numbers = state.runs.map(({ head }) =>
    head.names.map((name) => number.get(name) ?? classes.length - 1),
  );
  return { classes, of: (run, i) => numbers[run.number][run.spans.name[i]] };
}

/**
 * Each request has a class of its own; if there are too many, the colours repeat.
 * @returns {Classes}
 */
function byRequest() {
  const all = [...new Set(state.runs.flatMap(({ head }) => head.requests))];
  const number = new Map(all.map((request, i) => [request, i % DISTINCT.length]));
  const classes = all.slice(0, DISTINCT.length).map((request, i) => {
    const next = all[i + DISTINCT.length];
    const name = next === undefined ? `request ${request}` : `requests ${request}, ${next}, …`;
    return { name, hue: DISTINCT[i], hatch: "", shades: 1 };
  });
  classes.push(others("no single request"));
  const numbers = state.runs.map(({ head }) => head.requests.map((r) => number.get(r) ?? 0));
  const of = (/** @type {Run} */ run, /** @type {number} */ i) =>
    run.spans.request[i] < 0 ? classes.length - 1 : numbers[run.number][run.spans.request[i]];
  return { classes, of };
}

/** What passes are for in speculative decoding, and what became of them: hue and hatch. @type {[string, Rgb, string][]} */
const DRAFT_CLASSES = [
  ["draft", [86, 180, 233], ""],
  ["draft, some rows wasted", [86, 180, 233], "/"],
  ["verify, all accepted", [0, 158, 115], ""],
  ["verify, some rows wasted", [230, 159, 0], "/"],
  ["cancelled", [213, 94, 0], "x"],
];

/** @returns {Classes} */
function byDraft() {
  const classes = DRAFT_CLASSES.map(([name, hue, hatch]) => ({ name, hue, hatch, shades: 1 }));
  classes.push(others("no draft"));
  return {
    classes,
    of: ({ spans }, i) => {
      if (spans.flags[i] & 4) return 4;
      if (spans.role[i] === 0) return classes.length - 1;
      return 2 * (spans.role[i] - 1) + (spans.wasted[i] > 0 ? 1 : 0);
    },
  };
}

/** @param {string} coloring */
function setColoring(coloring) {
  state.coloring = coloring;
  input("coloring").value = coloring;
  classify();
  apply();
  repaint();
}
