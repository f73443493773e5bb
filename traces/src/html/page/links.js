/** Draws the links between lanes: the critical path and messages. */

/**
 * Most messages drawn at once. With more in view, only those of the hovered or pinned span are
 * drawn.
 */
const MESSAGES_MAX = 250;

/**
 * Draws the critical path as a strip below the outer spans of each lane, and as lines between lanes
 * where there is room.
 */
function drawCriticalPath() {
  for (const run of state.runs) {
    const { segments } = run;
    const { t0, t1 } = state;
    const scale = scaleNow();
    const first = firstAbove(segments.end, t0);
    const stop = firstFrom(segments.start, t1);
    if (first >= stop) continue;
    state.drawn.segments += stop - first;
    for (const band of layout.bands) {
      if (band.run !== run || band.rows.length === 0) continue;
      strip.y = band.rows[0].y + band.rows[0].height - 2.5;
      strip.track = band.lane.critical;
      paintTrack(strip.track, t0, t1, scale, strip);
    }
    const turns = firstFrom(run.turns.at, t1) - firstAbove(run.turns.at, t0);
    if (turns <= state.width / 10) connect(run);
  }
}

const strip = {
  y: 0,
  /** @type {Track} */
  track: /** @type {any} */ (null),
  /** @param {number} x0 @param {number} x1 @param {number} index */
  box(x0, x1, index) {
    const left = Math.max(x0, -4);
    const right = Math.min(x1, state.width + 4);
    pen.fillStyle = palette.critical;
    if (this.track.kind[index] === 0) {
      pen.fillRect(left, this.y, right - left, 2.5);
      return;
    }
    for (let x = left; x < right; x += 5)
      pen.fillRect(x, this.y + 0.5, Math.min(2.5, right - x), 1.5);
  },
  /** @param {number} x @param {number} width @param {number} _kind @param {number} level */
  density(x, width, _kind, level) {
    pen.globalAlpha = 0.25 + (0.75 * level) / LEVELS;
    pen.fillStyle = palette.critical;
    pen.fillRect(x, this.y, width, 2.5);
    pen.globalAlpha = 1;
  },
};

/**
 * Draws lines from lane to lane along the critical path.
 * @param {Run} run
 */
function connect(run) {
  const { segments } = run;
  const scale = scaleNow();
  /** @param {number} i */
  const height = (i) => {
    const band = bandOf(run.number, segments.lane[i]);
    return band && band.rows.length > 0 ? band.rows[0].y + band.rows[0].height - 1.25 : null;
  };
  pen.beginPath();
  const { at, id } = run.turns;
  const last = firstFrom(at, state.t1);
  for (let turn = firstAbove(at, state.t0); turn < last; turn++) {
    const i = id[turn];
    const [above, below] = [height(i - 1), height(i)];
    if (above === null || below === null) continue;
    const x = (segments.start[i] - state.t0) * scale;
    pen.moveTo(x, above);
    pen.lineTo(x, below);
  }
  pen.strokeStyle = palette.halo;
  pen.lineWidth = 3;
  pen.stroke();
  pen.strokeStyle = palette.critical;
  pen.lineWidth = 1.25;
  pen.stroke();
}

/** Draws the messages in view, or only those of the hovered and pinned spans. */
function drawMessages() {
  if (!state.messages) return;
  for (const run of state.runs) {
    const { messages } = run;
    const last = firstAbove(messages.sent, state.t1);
    const first = firstFrom(run.received, state.t0);
    const focus = new Set();
    for (const place of [state.pin, state.hover]) {
      if (!place || place.run !== run.number) continue;
      if ("what" in place && place.what !== "span") continue;
      for (const message of run.sentBy.of(place.index)) focus.add(message);
      for (const message of run.receivedBy.of(place.index)) focus.add(message);
    }
    if (last - first <= MESSAGES_MAX && !state.foundRows[run.number]) {
      for (let i = first; i < last; i++) if (!focus.has(i)) arrow(run, i, false);
    }
    for (const i of focus) arrow(run, i, true);
  }
}

/**
 * @param {Run} run
 * @param {number} message
 * @param {boolean} strong
 */
function arrow(run, message, strong) {
  const { messages } = run;
  if (messages.toLane[message] === 0 || messages.delay[message] === 0) return;
  const from = end(run, messages.from[message], messages.fromLane[message]);
  const to = end(run, messages.to[message], messages.toLane[message] - 1);
  if (!from || !to) return;
  const scale = scaleNow();
  const x0 = (messages.sent[message] - state.t0) * scale;
  const x1 = (messages.sent[message] + messages.delay[message] - 1 - state.t0) * scale;
  // A message with both ends outside of the view is not drawn.
  if (!strong && (x0 < 0 || x0 > state.width) && (x1 < 0 || x1 > state.width)) return;
  state.drawn.messages += 1;
  const down = to.y >= from.y;
  const y0 = down ? from.y + from.height : from.y;
  const y1 = down ? to.y - 1 : to.y + to.height + 1;
  const bend = Math.min(Math.max(12, Math.abs(x1 - x0) / 2), Math.abs(y1 - y0) * 0.9 + 8);
  const way = down ? 1 : -1;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.bezierCurveTo(x0, y0 + way * bend * 0.6, x1, y1 - way * bend * 0.8, x1, y1 - way * 4);
  pen.strokeStyle = strong ? palette.accent : palette.faint;
  pen.lineWidth = strong ? 2 : 1;
  pen.stroke();
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x1 - 3.5, y1 - way * 6);
  pen.lineTo(x1 + 3.5, y1 - way * 6);
  pen.closePath();
  pen.fillStyle = strong ? palette.accent : palette.muted;
  pen.fill();
}

/**
 * Row at one end of a message.
 * @param {Run} run
 * @param {number} span below 0 for none
 * @param {number} lane
 */
function end(run, span, lane) {
  const band = bandOf(run.number, lane);
  if (!band || band.rows.length === 0) return null;
  return span >= 0 && run.spans.lane[span] === lane ? rowOf(band, span) : band.rows[0];
}
