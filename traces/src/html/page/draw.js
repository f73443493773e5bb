/** Draws the lanes. */

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/** @param {string} id @returns {HTMLCanvasElement} */
const canvasOf = (id) => /** @type {HTMLCanvasElement} */ (document.getElementById(id));

/** @param {HTMLCanvasElement} canvas @returns {CanvasRenderingContext2D} */
const contextOf = (canvas) =>
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));

const lanesCanvas = canvasOf("lanes");
const pen = contextOf(lanesCanvas);
/** @type {Palette} */
let palette;

/** Widths of texts in `FONT`. @type {Map<string, number>} */
const textWidths = new Map();

/** @param {string} text */
function textWidth(text) {
  let width = textWidths.get(text);
  if (width === undefined) {
    if (textWidths.size > 20000) textWidths.clear();
    width = pen.measureText(text).width;
    textWidths.set(text, width);
  }
  return width;
}

/**
 * Draws as much of a text as fits.
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} room
 * @returns {number} width of the text drawn
 */
function writeWithin(text, x, y, room) {
  const width = textWidth(text);
  if (width <= room) {
    pen.fillText(text, x, y);
    return width;
  }
  const letters = Math.floor((text.length * (room - 8)) / width);
  if (letters >= 2) pen.fillText(text.slice(0, letters).trimEnd() + "…", x, y);
  return room;
}

/** @param {string} name */
function shadeOf(name) {
  let hash = 7;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return Math.abs(hash) % 3;
}

/** Shade of each span name, by run. @type {Map<Run, Uint8Array>} */
const shades = new Map();

/** @param {Run} run */
function shadesOf(run) {
  let all = shades.get(run);
  if (!all) shades.set(run, (all = Uint8Array.from(run.head.names, shadeOf)));
  return all;
}

/**
 * Label of a span's box.
 * @param {Run} run
 * @param {number} span
 */
function labelOf(run, span) {
  const { spans, head } = run;
  const name = head.names[spans.name[span]];
  const chunk = spans.chunk[span];
  return spans.level[span] === 0 && chunk >= 0 ? `${name} · ${head.chunks[chunk]}` : name;
}

/** The brush for spans. All rows share it, so that a frame allocates nothing for spans. */
const spanBrush = {
  y: 0,
  height: 0,
  dim: false,
  /** @type {Run} */
  run: /** @type {any} */ (null),
  /** @type {Track} */
  track: /** @type {any} */ (null),
  /** @type {Uint8Array} */
  shades: new Uint8Array(),
  /** @param {number} x0 @param {number} x1 @param {number} index */
  box(x0, x1, index) {
    const span = this.track.id[index];
    const { spans } = this.run;
    const work = palette.work[this.track.kind[index]];
    const shade = work.shades[this.shades[spans.name[span]] % work.shades.length];
    const left = Math.max(x0, -4);
    const right = Math.min(x1, state.width + 4);
    const width = right - left > 3 ? right - left - 0.75 : right - left;
    pen.fillStyle = shade.fill;
    pen.fillRect(left, this.y, width, this.height);
    state.drawn.boxes += 1;
    if (width < 6) return;
    if (work.hatch) {
      pen.fillStyle = work.hatch;
      pen.fillRect(left, this.y, width, this.height);
    }
    if (width < 22 || this.dim) return;
    const x = Math.max(left, 0) + 4;
    const room = right - x - 4;
    if (room < 12) return;
    pen.fillStyle = shade.text;
    const middle = this.y + this.height / 2 + 0.5;
    const used = writeWithin(labelOf(this.run, span), x, middle, room);
    if (room - used < 56) return;
    pen.textAlign = "right";
    pen.fillText(formatTime(spans.end[span] - spans.start[span]), x + room, middle);
    pen.textAlign = "left";
  },
  /** @param {number} x @param {number} width @param {number} kind @param {number} level */
  density(x, width, kind, level) {
    const height = Math.max(2, (this.height * level) / LEVELS);
    pen.fillStyle = palette.work[kind].shades[0].fill;
    pen.fillRect(x, this.y + this.height - height, width, height);
    state.drawn.bars += 1;
  },
};

const gapBrush = {
  y: 0,
  height: 0,
  alpha: 1,
  /** @type {Run} */
  run: /** @type {any} */ (null),
  /** @type {Track} */
  track: /** @type {any} */ (null),
  /** @param {number} x0 @param {number} x1 @param {number} index */
  box(x0, x1, index) {
    const cause = palette.causes[this.track.kind[index]];
    const left = Math.max(x0, -4);
    const width = Math.min(x1, state.width + 4) - left;
    pen.fillStyle = width < 4 ? cause.solid : cause.fill;
    pen.fillRect(left, this.y, width, this.height);
    if (width < 4) return;
    if (cause.hatch) {
      pen.fillStyle = cause.hatch;
      pen.fillRect(left, this.y, width, this.height);
    }
    if (width < 60) return;
    const x = Math.max(left, 0) + 6;
    const room = Math.min(x1, state.width) - x - 6;
    const gap = this.track.id[index];
    const text = causeText(this.run, this.track.kind[index], this.run.gaps.on[gap]);
    const used = textWidth(text);
    if (used + 8 > room) return;
    pen.fillStyle = palette.halo;
    pen.fillRect(x - 3, this.y + 3, used + 6, this.height - 6);
    pen.fillStyle = palette.muted;
    pen.fillText(text, x, this.y + this.height / 2 + 0.5);
  },
  /** @param {number} x @param {number} width @param {number} kind @param {number} level */
  density(x, width, kind, level) {
    pen.globalAlpha = this.alpha * (0.3 + (0.7 * level) / LEVELS);
    pen.fillStyle = palette.causes[kind].solid;
    pen.fillRect(x, this.y, width, this.height);
    pen.globalAlpha = this.alpha;
  },
};

/** Draws everything. */
function drawAll() {
  if (state.runs.length === 0) return;
  const begin = performance.now();
  if (layOut()) laidOut();
  look();
  const { drawn } = state;
  drawn.spans = drawn.matches = drawn.gaps = drawn.boxes = drawn.bars = 0;
  drawn.messages = drawn.segments = drawn.waits = 0;
  pen.setTransform(state.ratio, 0, 0, state.ratio, 0, 0);
  pen.fillStyle = palette.paper;
  pen.fillRect(0, 0, state.width, state.height);
  pen.translate(0, -state.scroll);
  pen.font = FONT;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  drawGrid();
  for (const band of layout.bands) {
    if (band.y + band.height < state.scroll || band.y > state.scroll + state.height) {
      countBand(band);
    } else {
      drawBand(band);
    }
  }
  drawTitles();
  if (state.critical) drawCriticalPath();
  drawMessages();
  drawMarks();
  drawRuler();
  drawOverview();
  drawReadings();
  remember();
  state.drawings += 1;
  state.drawTime = performance.now() - begin;
}

/** Counts the spans of a band outside the view. @param {Band} band */
function countBand(band) {
  for (const { row } of band.rows) {
    const track = state.rows[band.run.number][row];
    const first = firstAbove(track.end, state.t0);
    state.drawn.spans += Math.max(0, firstFrom(track.start, state.t1) - first);
  }
}

/** @param {Band} band */
function drawBand(band) {
  const { run, lane } = band;
  const { t0, t1, drawn } = state;
  const scale = scaleNow();
  if (state.gaps && band.rows.length > 0 && !filtering()) {
    gapBrush.y = band.rows[0].y;
    gapBrush.height = band.rows[0].height;
    gapBrush.run = run;
    gapBrush.track = lane.gaps;
    gapBrush.alpha = state.foundRows[run.number] ? 0.35 : 1;
    pen.globalAlpha = gapBrush.alpha;
    drawn.gaps += paintTrack(lane.gaps, t0, t1, scale, gapBrush);
    pen.globalAlpha = 1;
  }
  const found = state.foundRows[run.number];
  spanBrush.run = run;
  spanBrush.shades = shadesOf(run);
  for (const { row, y, height } of band.rows) {
    spanBrush.y = y;
    spanBrush.height = height;
    spanBrush.dim = found !== null;
    spanBrush.track = state.rows[run.number][row];
    pen.globalAlpha = found ? 0.2 : 1;
    drawn.spans += paintTrack(spanBrush.track, t0, t1, scale, spanBrush);
    pen.globalAlpha = 1;
    if (!found) continue;
    spanBrush.dim = false;
    spanBrush.track = found[row];
    drawn.matches += paintTrack(spanBrush.track, t0, t1, scale, spanBrush);
  }
  if (state.gaps && band.rows.length > 0) drawSleeps(band);
  if (band.waitY >= 0) drawWaits(band);
  for (const { index, y } of band.counters) drawCounter(run.counters[index], y);
  pen.fillStyle = palette.line;
  pen.fillRect(0, band.y + band.height - 1, state.width, 1);
}

/** Whether idle time is hidden: with a filter, spans that fill it may be hidden too. */
function filtering() {
  const { activity, request, layer, chunk } = state.filter;
  return Boolean(activity || request || layer || chunk);
}

function drawTitles() {
  for (const { y } of layout.titles) {
    pen.fillStyle = palette.band;
    pen.fillRect(0, y, state.width, 26);
    pen.fillStyle = palette.line;
    pen.fillRect(0, y + 25, state.width, 1);
  }
}

/** Draws the outlines of the hovered and the pinned span, the selection and the pointer's line. */
function drawMarks() {
  const { t0, selection, hover, pin } = state;
  const scale = scaleNow();
  if (hover?.what === "span") outline(hover.run, hover.index, palette.ink, 1.5);
  const match = state.matches[state.match];
  if (match) outline(match.run, match.index, palette.late, 2);
  if (pin) outline(pin.run, pin.index, palette.accent, 2.5);
  const top = state.scroll;
  if (selection) {
    const x0 = (selection.from - t0) * scale;
    const x1 = (selection.to - t0) * scale;
    pen.fillStyle = palette.veil;
    pen.fillRect(x0, top, x1 - x0, state.height);
    pen.fillStyle = palette.accent;
    pen.fillRect(x0 - 0.5, top, 1, state.height);
    pen.fillRect(x1 - 0.5, top, 1, state.height);
  }
  if (state.pointer !== null) {
    pen.fillStyle = palette.faint;
    pen.fillRect(Math.round((state.pointer - t0) * scale), top, 1, state.height);
  }
}

/**
 * @param {number} run
 * @param {number} span
 * @param {string} color
 * @param {number} thickness
 */
function outline(run, span, color, thickness) {
  const { spans } = state.runs[run];
  const band = bandOf(run, spans.lane[span]);
  const row = band && rowOf(band, span);
  if (!row) return;
  const scale = scaleNow();
  const x0 = Math.max(-4, (spans.start[span] - state.t0) * scale);
  const x1 = Math.min(state.width + 4, (spans.end[span] - state.t0) * scale);
  pen.strokeStyle = palette.halo;
  pen.lineWidth = thickness + 2;
  pen.strokeRect(x0 - 1, row.y - 1, Math.max(2, x1 - x0) + 1, row.height + 2);
  pen.strokeStyle = color;
  pen.lineWidth = thickness;
  pen.strokeRect(x0 - 1, row.y - 1, Math.max(2, x1 - x0) + 1, row.height + 2);
}
