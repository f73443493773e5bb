/** Draws the time axis, the grid below it, and the overview above it. */

const rulerPen = contextOf(canvasOf("ruler"));
const overviewPen = contextOf(canvasOf("overview"));
const RULER_HEIGHT = 24;
const OVERVIEW_HEIGHT = 40;

/** @type {[number, string][]} */
const UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** Ticks about 110 pixels apart at 1, 2 or 5 times a power of ten nanoseconds. */
function ticks() {
  const least = 110 / scaleNow();
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(
    1,
    power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10),
  );
  const [size, unit] = UNITS.find(([size]) => step >= size) ?? UNITS[3];
  // The common part of long numbers is shown once, at the left edge.
  const far = Math.abs(state.t1) / size >= 10000;
  const base = far ? Math.floor(state.t0 / (size * 1000)) * size * 1000 : 0;
  return { step, size, unit, base, first: Math.ceil(state.t0 / step) * step };
}

function drawGrid() {
  const { step, first } = ticks();
  const scale = scaleNow();
  pen.fillStyle = palette.grid;
  for (let t = first; t <= state.t1; t += step) {
    pen.fillRect(Math.round((t - state.t0) * scale), state.scroll, 1, state.height);
  }
  // Time outside of the recording.
  pen.fillStyle = palette.band;
  const before = (state.from - state.t0) * scale;
  const after = (state.to - state.t0) * scale;
  if (before > 0) pen.fillRect(0, state.scroll, before, state.height);
  if (after < state.width) pen.fillRect(after, state.scroll, state.width - after, state.height);
}

function drawRuler() {
  const { step, size, unit, base, first } = ticks();
  const scale = scaleNow();
  const { width, t0, selection } = state;
  rulerPen.setTransform(state.ratio, 0, 0, state.ratio, 0, 0);
  rulerPen.fillStyle = palette.paper;
  rulerPen.fillRect(0, 0, width, RULER_HEIGHT);
  rulerPen.font = FONT;
  rulerPen.textBaseline = "middle";
  rulerPen.textAlign = "left";
  for (let t = first; t <= state.t1; t += step) {
    const x = Math.round((t - t0) * scale);
    rulerPen.fillStyle = palette.faint;
    rulerPen.fillRect(x, RULER_HEIGHT - 7, 1, 7);
    const value = formatGrouped(Math.round((t - base) / size));
    rulerPen.fillStyle = palette.muted;
    rulerPen.fillText(`${base ? "+" : ""}${value}${NO_BREAK}${unit}`, x + 4, 10);
  }
  rulerPen.fillStyle = palette.line;
  rulerPen.fillRect(0, RULER_HEIGHT - 1, width, 1);
  if (selection) {
    const x0 = (selection.from - t0) * scale;
    const x1 = (selection.to - t0) * scale;
    flag((x0 + x1) / 2, formatTime(selection.to - selection.from), palette.accent, [x0, x1]);
  }
  if (state.pointer !== null && !selection) {
    flag((state.pointer - t0) * scale, formatMoment(state.pointer, 1 / scale), palette.ink, null);
  }
  const corner = /** @type {HTMLElement} */ (document.getElementById("corner"));
  corner.textContent = base ? `${formatGrouped(base / size)} ${unit} +` : "";
}

/**
 * @param {number} x
 * @param {string} text
 * @param {string} color
 * @param {[number, number] | null} range
 */
function flag(x, text, color, range) {
  const width = rulerPen.measureText(text).width + 10;
  const left = Math.min(Math.max(0, x - width / 2), state.width - width);
  rulerPen.fillStyle = color;
  if (range) rulerPen.fillRect(range[0], RULER_HEIGHT - 3, range[1] - range[0], 3);
  rulerPen.fillRect(left, 2, width, 16);
  rulerPen.fillStyle = palette.paper;
  rulerPen.fillText(text, left + 5, 10.5);
}

/** Picture of the whole run, drawn once for each size and theme. */
const whole = document.createElement("canvas");

function drawWhole() {
  whole.width = Math.round(state.width * state.ratio);
  whole.height = Math.round(OVERVIEW_HEIGHT * state.ratio);
  const brush = contextOf(whole);
  brush.setTransform(state.ratio, 0, 0, state.ratio, 0, 0);
  brush.fillStyle = palette.paper;
  brush.fillRect(0, 0, state.width, OVERVIEW_HEIGHT);
  const lanes = state.runs.flatMap((run) => run.inOrder);
  const step = (OVERVIEW_HEIGHT - 6) / lanes.length;
  const height = Math.max(0.5, step - (step > 3 ? 1 : 0));
  const color = palette.busy;
  lanes.forEach((lane, i) => {
    const y = 3 + i * step;
    brush.fillStyle = palette.band;
    brush.fillRect(0, y, state.width, height);
    paintTrack(lane.busy, state.from, state.to, state.width / (state.to - state.from), {
      box(x0, x1) {
        brush.fillStyle = color;
        brush.fillRect(x0, y, x1 - x0, height);
      },
      density(x, width, _, level) {
        const part = Math.max(1, (height * level) / LEVELS);
        brush.fillStyle = color;
        brush.fillRect(x, y + height - part, width, part);
      },
    });
  });
}

function drawOverview() {
  const { width, from, to, t0, t1 } = state;
  overviewPen.setTransform(1, 0, 0, 1, 0, 0);
  overviewPen.drawImage(whole, 0, 0);
  overviewPen.setTransform(state.ratio, 0, 0, state.ratio, 0, 0);
  const scale = width / (to - from);
  const x0 = Math.max(0, (t0 - from) * scale);
  const x1 = Math.min(width, (t1 - from) * scale);
  if (t1 - t0 < (to - from) * 0.999) {
    overviewPen.globalAlpha = 0.6;
    overviewPen.fillStyle = palette.paper;
    overviewPen.fillRect(0, 0, x0, OVERVIEW_HEIGHT);
    overviewPen.fillRect(x1, 0, width - x1, OVERVIEW_HEIGHT);
    overviewPen.globalAlpha = 1;
    overviewPen.strokeStyle = palette.accent;
    overviewPen.lineWidth = 1.5;
    const least = Math.max(2, x1 - x0 - 1.5);
    overviewPen.strokeRect(Math.min(x0 + 0.75, width - least), 0.75, least, OVERVIEW_HEIGHT - 2.5);
  }
  overviewPen.fillStyle = palette.line;
  overviewPen.fillRect(0, OVERVIEW_HEIGHT - 1, width, 1);
}
