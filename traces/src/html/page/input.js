/** Handles mouse, touch and keys. */

const scroller = /** @type {HTMLElement} */ (document.getElementById("scroll"));

/** @param {PointerEvent | WheelEvent | MouseEvent} event */
function pointOf(event) {
  const box = lanesCanvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/** @param {WheelEvent} event */
function onWheel(event) {
  const { x, y } = pointOf(event);
  // Over the names, or with Alt, the wheel scrolls the lanes.
  if (x < 0 || event.altKey) return;
  event.preventDefault();
  endGlide();
  const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? state.height : 1;
  const sideways = (event.shiftKey ? event.deltaX || event.deltaY : event.deltaX) * lines;
  if (Math.abs(sideways) > Math.abs(event.deltaY * lines) || event.shiftKey) {
    const shift = sideways / scaleNow();
    return show(state.t0 + shift, state.t1 + shift);
  }
  keepAt(y);
  // A pinch arrives as wheel events with Ctrl and small steps.
  const strength = event.ctrlKey ? 0.01 : 0.0018;
  zoom(Math.exp(event.deltaY * lines * strength), state.t0 + x / scaleNow());
}

/** Pointers that are down, to detect a pinch with two fingers. @type {Map<number, { x: number, y: number }>} */
const fingers = new Map();

/** @param {PointerEvent} down */
function onDown(down) {
  if (down.button !== 0) return;
  endGlide();
  scroller.focus({ preventScroll: true });
  lanesCanvas.setPointerCapture(down.pointerId);
  const from = pointOf(down);
  fingers.set(down.pointerId, from);
  if (fingers.size > 1) return;
  const { t0, t1, scroll } = state;
  const selects = down.shiftKey;
  const begin = t0 + from.x / scaleNow();
  let moved = false;
  /** @param {PointerEvent} move */
  const drag = (move) => {
    if (fingers.size > 1) return pinch(move);
    const to = pointOf(move);
    moved ||= Math.hypot(to.x - from.x, to.y - from.y) > 3;
    if (!moved) return;
    state.mouse = null;
    if (selects) {
      const now = state.t0 + Math.min(state.width, Math.max(0, to.x)) / scaleNow();
      state.selection = { from: Math.min(begin, now), to: Math.max(begin, now) };
      return redraw();
    }
    lanesCanvas.style.cursor = "grabbing";
    const shift = ((from.x - to.x) / state.width) * (t1 - t0);
    show(t0 + shift, t1 + shift);
    scroller.scrollTop = scroll + from.y - to.y;
  };
  /** @param {PointerEvent} up */
  const stop = (up) => {
    lanesCanvas.removeEventListener("pointermove", drag);
    lanesCanvas.style.cursor = "";
    if (moved && selects) return setSelection(state.selection);
    if (!moved && up.type === "pointerup") click(up);
  };
  lanesCanvas.addEventListener("pointermove", drag);
  lanesCanvas.addEventListener("pointerup", stop, { once: true });
  lanesCanvas.addEventListener("pointercancel", stop, { once: true });
}

/** @param {PointerEvent} move */
function pinch(move) {
  const before = fingers.get(move.pointerId);
  const other = [...fingers].find(([id]) => id !== move.pointerId)?.[1];
  if (!before || !other) return;
  const now = pointOf(move);
  const factor = Math.abs(before.x - other.x) / Math.max(4, Math.abs(now.x - other.x));
  zoom(factor, state.t0 + other.x / scaleNow());
  fingers.set(move.pointerId, now);
}

/** @param {PointerEvent} event */
function click(event) {
  const { x, y } = pointOf(event);
  const place = pick(x, y);
  setPin(place?.what === "span" ? { run: place.run, index: place.index } : null);
}

/** @param {{ from: number, to: number } | null} selection */
function setSelection(selection) {
  state.selection = selection;
  fillSelection();
  if (selection) showTab("selected");
  redraw();
}

/** @param {PointerEvent} event */
function onHover(event) {
  if (event.buttons !== 0 || event.pointerType === "touch") return;
  state.mouse = { ...pointOf(event), windowX: event.clientX, windowY: event.clientY };
  redraw();
}

function onLeave() {
  state.mouse = null;
  redraw();
}

/** Finds the item under the pointer. The lanes may move below a pointer at rest. */
function look() {
  const { mouse, hover } = state;
  state.pointer = mouse && state.t0 + mouse.x / scaleNow();
  state.hover = mouse && pick(mouse.x, mouse.y);
  const same = state.hover?.index === hover?.index && state.hover?.what === hover?.what;
  if (!same || mouse) showCard(state.hover, mouse?.windowX ?? 0, mouse?.windowY ?? 0);
}

/** Fits the view to the selected range, the pinned span or the current match. */
function fit() {
  const span = state.pin ?? state.matches[state.match];
  let range = state.selection;
  if (!range && span) {
    const { start, end } = state.runs[span.run].spans;
    range = { from: start[span.index], to: end[span.index] };
  }
  if (!range) return;
  const room = (range.to - range.from) * 0.05;
  glide(range.from - room, range.to + room);
}

/** @param {MouseEvent} event */
function onDouble(event) {
  const { x, y } = pointOf(event);
  const place = pick(x, y);
  if (place?.what === "gap") {
    const { gaps } = state.runs[place.run];
    const room = (gaps.end[place.index] - gaps.start[place.index]) * 0.25;
    return glide(gaps.start[place.index] - room, gaps.end[place.index] + room);
  }
  fit();
}

/** @typedef {"critical" | "gaps" | "messages"} Layer */

/** @type {Layer[]} */
const LAYERS = ["critical", "gaps", "messages"];

/** @param {Layer} layer @param {boolean} shown */
function setLayer(layer, shown) {
  state[layer] = shown;
  document.getElementById(`show-${layer}`)?.setAttribute("aria-pressed", String(shown));
  redraw();
}

/** @param {Layer} layer */
function toggleLayer(layer) {
  setLayer(layer, !state[layer]);
}

/** Pins the previous or next span in the row of the pinned one. @param {1 | -1} step */
function stepPin(step) {
  const { pin } = state;
  if (!pin) return;
  const track = state.rows[pin.run][state.runs[pin.run].spans.row[pin.index]];
  const next = track.id.indexOf(pin.index) + step;
  if (next >= 0 && next < track.id.length) goTo({ run: pin.run, index: track.id[next] });
}

/** @param {number} part of the view */
function pan(part) {
  const [t0, t1] = target();
  glide(t0 + (t1 - t0) * part, t1 + (t1 - t0) * part);
}

/** Zooms at the pointer if it is over the lanes, else in the middle. @param {number} factor */
function zoomByKey(factor) {
  const [t0, t1] = target();
  const inside = state.pointer !== null && state.pointer >= t0 && state.pointer <= t1;
  const at = inside && state.pointer !== null ? state.pointer : (t0 + t1) / 2;
  keepAt(state.height / 2);
  glide(at - (at - t0) * factor, at + (t1 - at) * factor);
}

function onEscape() {
  if (state.query) return search("");
  setSelection(null);
  setPin(null);
}

function pinMatch() {
  const match = state.matches[state.match];
  if (match) goTo(match);
}

function cycleNested() {
  state.nested = state.nested === "zoom" ? "all" : state.nested === "all" ? "none" : "zoom";
  redraw();
}

/** @type {Record<string, () => void>} */
const KEYS = {
  "+": () => zoomByKey(1 / 1.6),
  "=": () => zoomByKey(1 / 1.6),
  w: () => zoomByKey(1 / 1.6),
  "-": () => zoomByKey(1.6),
  s: () => zoomByKey(1.6),
  a: () => pan(-0.2),
  d: () => pan(0.2),
  ArrowLeft: () => pan(-0.2),
  ArrowRight: () => pan(0.2),
  ArrowUp: () => scroller.scrollBy(0, -60),
  ArrowDown: () => scroller.scrollBy(0, 60),
  f: fit,
  0: () => glide(state.from, state.to),
  c: () => toggleLayer("critical"),
  g: () => toggleLayer("gaps"),
  m: () => toggleLayer("messages"),
  e: cycleNested,
  t: () => togglePanel(),
  n: () => nextMatch(1),
  N: () => nextMatch(-1),
  Enter: pinMatch,
  "[": () => stepPin(-1),
  "]": () => stepPin(1),
  "/": () => input("query").select(),
  "?": () => /** @type {HTMLDialogElement} */ (document.getElementById("keys")).showModal(),
  Escape: onEscape,
};

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const at = /** @type {Element} */ (event.target);
  if (at.closest("input, select, textarea, dialog")) return;
  const action = KEYS[event.key];
  // Space and Enter activate a focused button.
  if (!action || (event.key === "Enter" && at.closest("button"))) return;
  event.preventDefault();
  action();
}

function makeOverview() {
  const overview = canvasOf("overview");
  /** @param {PointerEvent} event */
  const move = (event) => {
    if (event.buttons !== 1) return;
    endGlide();
    const box = overview.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const middle = state.from + share * (state.to - state.from);
    const half = (state.t1 - state.t0) / 2;
    show(middle - half, middle + half);
  };
  overview.addEventListener("pointerdown", (event) => {
    overview.setPointerCapture(event.pointerId);
    move(event);
  });
  overview.addEventListener("pointermove", move);
}

function listen() {
  document.getElementById("stage")?.addEventListener("wheel", onWheel, { passive: false });
  lanesCanvas.addEventListener("pointerdown", onDown);
  for (const type of ["pointerup", "pointercancel"]) {
    lanesCanvas.addEventListener(type, (event) =>
      fingers.delete(/** @type {PointerEvent} */ (event).pointerId),
    );
  }
  lanesCanvas.addEventListener("pointermove", onHover);
  lanesCanvas.addEventListener("pointerleave", onLeave);
  lanesCanvas.addEventListener("dblclick", onDouble);
  addEventListener("keydown", onKey);
  scroller.addEventListener("scroll", () => {
    state.scroll = scroller.scrollTop;
    redraw();
  });
  for (const layer of LAYERS) {
    document.getElementById(`show-${layer}`)?.addEventListener("click", () => toggleLayer(layer));
  }
  document.getElementById("toggle-panel")?.addEventListener("click", () => togglePanel());
  document.getElementById("theme")?.addEventListener("click", toggleTheme);
  document.getElementById("help")?.addEventListener("click", KEYS["?"]);
  input("coloring").addEventListener("change", () => setColoring(input("coloring").value));
  addEventListener("hashchange", followView);
  darkMedia.addEventListener("change", repaint);
  new ResizeObserver(resize).observe(scroller);
  makeOverview();
  makeSplitter();
}
