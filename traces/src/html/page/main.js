/** Entry point: decodes the runs and shows them. */

/** Width of the window for which the column of names was made. */
let fittedAt = -1;

function drawReadings() {
  const range = formatTime(state.t1 - state.t0);
  const from = formatTime(Math.abs(state.t0) < (state.t1 - state.t0) / 1000 ? 0 : state.t0);
  input("range").textContent = `${range} in view from ${from}`;
}

/** Fits the canvases to their elements. */
function resize() {
  if (innerWidth !== fittedAt) {
    fittedAt = innerWidth;
    fitGutter();
  }
  const ratio = devicePixelRatio || 1;
  const box = scroller.getBoundingClientRect();
  const width = Math.max(50, scroller.clientWidth - gutter.offsetWidth);
  const height = Math.max(50, Math.floor(box.height));
  if (width === state.width && height === state.height && ratio === state.ratio) return;
  const sharper = ratio !== state.ratio;
  Object.assign(state, { width, height, ratio });
  for (const [id, h] of /** @type {[string, number][]} */ ([
    ["lanes", height],
    ["ruler", RULER_HEIGHT],
    ["overview", OVERVIEW_HEIGHT],
  ])) {
    const canvas = canvasOf(id);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(h * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${h}px`;
  }
  layout.key = "";
  if (sharper || !palette) repaint();
  else drawWhole();
  // Draws immediately, because a resized canvas is blank.
  drawAll();
}

/** Latest time of all runs; the earliest is 0. */
function bounds() {
  state.to = 1;
  for (const { last, counters, waits } of state.runs) {
    state.to = Math.max(state.to, last);
    for (const { at } of counters) state.to = Math.max(state.to, at[at.length - 1] ?? 0);
    for (let i = 0; i < waits.count; i++) state.to = Math.max(state.to, waits.end[i]);
  }
}

/** Read-only access for tests. */
const hook = Object.freeze({
  get range() {
    return [state.t0, state.t1];
  },
  get bounds() {
    return [state.from, state.to];
  },
  get drawn() {
    return { ...state.drawn };
  },
  get shown() {
    return state.shown;
  },
  get matches() {
    return state.matches.length;
  },
  get match() {
    return state.match;
  },
  get drawings() {
    return state.drawings;
  },
  get drawTime() {
    return state.drawTime;
  },
  get moving() {
    return goal !== null || drawing !== 0;
  },
  get selection() {
    return state.selection && { ...state.selection };
  },
  get hover() {
    return state.hover && { ...state.hover };
  },
  get pin() {
    return state.pin && { ...state.pin };
  },
  get layers() {
    return { critical: state.critical, gaps: state.gaps, messages: state.messages };
  },
  /** Smallest contrast of text on spans. */
  get contrast() {
    return Math.min(...palette.work.flatMap(({ shades }) => shades.map((s) => s.contrast)));
  },
  /**
   * Busy time of a lane within a range.
   * @param {number} run @param {number} lane @param {number} from @param {number} to
   */
  busy(run, lane, from, to) {
    return timeWithin(state.runs[run].lanes[lane].busy, from, to);
  },
  /** Position of the middle of a span in the window. @param {number} run @param {number} span */
  place(run, span) {
    const { spans } = state.runs[run];
    const band = bandOf(run, spans.lane[span]);
    const row = band && rowOf(band, span);
    const box = lanesCanvas.getBoundingClientRect();
    const middle = (spans.start[span] + spans.end[span]) / 2;
    return {
      x: box.left + (middle - state.t0) * scaleNow(),
      y: row ? box.top + row.y + row.height / 2 - state.scroll : -1,
    };
  },
  /** Position of the middle of a gap in the window. @param {number} run @param {number} gap */
  gapPlace(run, gap) {
    const { gaps } = state.runs[run];
    const row = bandOf(run, gaps.lane[gap])?.rows[0];
    const box = lanesCanvas.getBoundingClientRect();
    const middle = (gaps.start[gap] + gaps.end[gap]) / 2;
    return {
      x: box.left + (middle - state.t0) * scaleNow(),
      y: row ? box.top + row.y + row.height / 2 - state.scroll : -1,
    };
  },
});
Object.defineProperty(window, "lapwing", { value: hook });

async function begin() {
  const texts = [...document.querySelectorAll("script.run")];
  const decoded = await Promise.all(texts.map((script) => decode(script.textContent ?? "")));
  performance.mark("decoded");
  state.runs = decoded.map(({ head, columns }, number) => makeRun(head, columns, number));
  for (const script of texts) script.remove();
  bounds();
  [state.t0, state.t1] = [state.from, state.to];
  classify();
  makeSearch();
  const y = readView(askedView());
  listen();
  resize();
  scroller.scrollTop = y;
  performance.mark("drawn");
  listRequests();
  enhanceTables();
}

makeTabs();
begin().catch((error) => {
  const broken = /** @type {HTMLElement} */ (document.getElementById("broken"));
  broken.hidden = false;
  broken.textContent = `The timeline cannot be drawn: ${error}. The tables are complete.`;
  document.documentElement.classList.remove("js");
  throw error;
});
