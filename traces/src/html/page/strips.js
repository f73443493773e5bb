/** Draws sleeps, predicted waits and counters of a lane. */

const sleepBrush = {
  y: 0,
  /** @param {number} x0 @param {number} x1 */
  box(x0, x1) {
    const left = Math.max(x0, -4);
    pen.fillStyle = palette.sleep;
    pen.fillRect(left, this.y, Math.min(x1, state.width + 4) - left, 2);
  },
  /** @param {number} x @param {number} width */
  density(x, width) {
    pen.fillStyle = palette.sleep;
    pen.fillRect(x, this.y, width, 2);
  },
};

/** Draws the sleeps of the lane's thread as a line above its outer spans. @param {Band} band */
function drawSleeps(band) {
  sleepBrush.y = band.rows[0].y - 3;
  paintTrack(band.lane.sleeps, state.t0, state.t1, scaleNow(), sleepBrush);
}

/**
 * Draws predicted waits: the parts asleep, polling and late, with a tick at the predicted end.
 * @param {Band} band
 */
function drawWaits(band) {
  const { waits, spans } = band.run;
  const { t0, t1 } = state;
  const scale = scaleNow();
  const y = band.waitY;
  let last = -1;
  for (const wait of band.lane.waits) {
    if (waits.end[wait] < t0 || waits.start[wait] > t1) continue;
    state.drawn.waits += 1;
    const x = (waits.start[wait] - t0) * scale;
    const slept = waits.slept[wait] * scale;
    const end = (waits.end[wait] - t0) * scale;
    // Of waits narrower than a pixel, one is drawn per pixel.
    if (end - x < 1 && Math.floor(x) === last) continue;
    last = Math.floor(x);
    pen.fillStyle = palette.line;
    pen.fillRect(x, y + 2, Math.max(slept, 0.5), WAIT_HEIGHT - 4);
    pen.fillStyle = palette.spun;
    pen.fillRect(x + slept, y, Math.max(end - x - slept, 0.5), WAIT_HEIGHT);
    const over = waits.target[wait] < 0 ? end : (spans.end[waits.target[wait]] - t0) * scale;
    if (end - over > 1) {
      pen.fillStyle = palette.late;
      pen.fillRect(over, y, end - over, WAIT_HEIGHT);
    }
    if (waits.predicted[wait] > 0 && end - x > 6) {
      const tick = x + waits.predicted[wait] * scale;
      pen.fillStyle = palette.ink;
      pen.fillRect(tick - 0.5, y - 1, 1, WAIT_HEIGHT + 2);
    }
  }
}

/**
 * Draws a counter as steps; the largest value within a pixel is kept visible.
 * @param {Run["counters"][number]} counter
 * @param {number} y
 */
function drawCounter(counter, y) {
  const { at, value, low, high } = counter;
  const { t0, t1, width } = state;
  const scale = scaleNow();
  const floor = y + COUNTER_HEIGHT - 2;
  /** @param {number} v */
  const place = (v) => floor - ((v - low) / Math.max(1, high - low)) * (COUNTER_HEIGHT - 6);
  let i = Math.max(0, firstAbove(at, t0) - 1);
  const stop = firstAbove(at, t1);
  pen.beginPath();
  let x = Math.max(-2, (at[i] - t0) * scale);
  pen.moveTo(x, floor);
  while (i < stop) {
    const pixel = Math.floor((at[i] - t0) * scale);
    let next = firstAbove(at, t0 + (pixel + 1) / scale, i + 1);
    next = Math.min(next, stop);
    x = Math.max(-2, (at[i] - t0) * scale);
    let most = value[i];
    for (let k = i; k < next; k++) most = Math.max(most, value[k]);
    pen.lineTo(x, place(most));
    const last = place(value[next - 1]);
    pen.lineTo(x, last);
    const until = next < stop ? (at[next] - t0) * scale : width + 2;
    pen.lineTo(until, last);
    x = until;
    i = next;
  }
  pen.lineTo(x, floor);
  pen.fillStyle = palette.counter;
  pen.fill();
  pen.strokeStyle = palette.accent;
  pen.lineWidth = 1;
  pen.stroke();
}
