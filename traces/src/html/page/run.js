/** A run: its columns and indices into them. */

/**
 * @typedef {object} LaneRun
 * @property {number} index
 * @property {string} name
 * @property {string} kind
 * @property {number[]} slotRows first row of each slot, and the end
 * @property {number[]} medians by level: duration such that longer spans take half of the time
 * @property {Track} busy when anything ran
 * @property {Track} gaps kind: cause
 * @property {Track} critical kind: 0 running, 1 waiting
 * @property {Track} sleeps
 * @property {Int32Array} waits
 * @property {number[]} counters
 */

/**
 * @typedef {ReturnType<typeof makeRun>} Run
 */

/**
 * Groups indices by a key: `ids.subarray(first[key], first[key + 1])`.
 * @param {Int32Array} keys below 0 for none
 * @param {number} count of keys
 */
function groupBy(keys, count) {
  const first = new Int32Array(count + 1);
  for (let i = 0; i < keys.length; i++) if (keys[i] >= 0) first[keys[i] + 1] += 1;
  for (let k = 0; k < count; k++) first[k + 1] += first[k];
  const ids = new Int32Array(first[count]);
  const next = first.slice();
  for (let i = 0; i < keys.length; i++) if (keys[i] >= 0) ids[next[keys[i]]++] = i;
  return {
    ids,
    first,
    /** @param {number} key */
    of: (key) => ids.subarray(first[key], first[key + 1]),
  };
}

/** @param {string} kind of a lane */
function rankOf(kind) {
  return kind === "device" ? 0 : kind === "link" ? 1 : 2;
}

/**
 * Time of the first event, at most 0, the start of the first span. Waits and sleeps do not count: they
 * may have begun long before the recording.
 * @param {Head} head
 * @param {(name: string) => Float64Array} wide
 */
function firstEvent(head, wide) {
  let first = 0;
  const columns = [
    "message.sent",
    "milestone.at",
    ...head.counters.map((_, i) => `counter.${i}.at`),
  ];
  for (const name of columns) for (const at of wide(name)) first = Math.min(first, at);
  return first;
}

/**
 * @param {Head} head
 * @param {Record<string, Float64Array | Int32Array>} columns
 * @param {number} number of the run on the page
 */
function makeRun(head, columns, number) {
  /** @param {string} name */
  const ints = (name) => /** @type {Int32Array} */ (columns[name]);
  /** @param {string} name */
  const wide = (name) => /** @type {Float64Array} */ (columns[name]);
  // The recorded times count from the first span, those of the page from the first event.
  const first = -firstEvent(head, wide);
  /** @param {string} name */
  const moments = (name) => (first === 0 ? wide(name) : wide(name).map((at) => at + first));
  /** @param {string} part */
  const timed = (part) => {
    const start = moments(part + ".start");
    const end = wide(part + ".duration").map((duration, i) => start[i] + duration);
    return { start, end, count: start.length, lane: ints(part + ".lane") };
  };
  const count = ints("span.lane").length;
  const spans = {
    ...timed("span"),
    slot: ints("span.slot"),
    parent: ints("span.parent").map((back, i) => (back === 0 ? -1 : i - back)),
    name: ints("span.name"),
    activity: ints("span.activity"),
    queued: wide("span.queued"),
    submitted: wide("span.submitted"),
    chunk: ints("span.chunk"),
    request: ints("span.request"),
    stage: ints("span.stage"),
    layer: ints("span.layer"),
    role: ints("span.role"),
    drafted: wide("span.drafted"),
    accepted: wide("span.accepted"),
    wasted: wide("span.wasted"),
    rows: wide("span.rows"),
    epoch: wide("span.epoch"),
    bytes: wide("span.bytes"),
    flops: wide("span.flops"),
    slack: wide("span.slack"),
    flags: ints("span.flags"),
    level: new Int32Array(count),
    row: new Int32Array(count),
  };
  const gaps = {
    ...timed("gap"),
    cause: ints("gap.cause"),
    on: ints("gap.on"),
    next: ints("gap.next"),
    blocker: ints("gap.blocker"),
  };
  const segments = {
    ...timed("segment"),
    cause: ints("segment.cause"),
    on: ints("segment.on"),
    span: ints("segment.span"),
  };
  const messages = {
    count: ints("message.from").length,
    from: ints("message.from"),
    to: ints("message.to"),
    fromLane: ints("message.fromLane"),
    toLane: ints("message.toLane"),
    name: ints("message.name"),
    sent: moments("message.sent"),
    delay: wide("message.delay"),
    bytes: wide("message.bytes"),
    stall: ints("message.stall"),
    stalled: wide("message.stalled"),
  };
  const waits = {
    ...timed("wait"),
    name: ints("wait.name"),
    target: ints("wait.target"),
    mode: ints("wait.mode"),
    predicted: wide("wait.predicted"),
    margin: wide("wait.margin"),
    slept: wide("wait.slept"),
    spun: wide("wait.spun"),
  };
  const milestones = {
    request: ints("milestone.request"),
    kind: ints("milestone.kind"),
    at: moments("milestone.at"),
    value: wide("milestone.value"),
  };
  const chunks = { limit: ints("chunk.limit"), slack: wide("chunk.slack") };
  const requests = { target: wide("request.target") };
  const counters = head.counters.map(({ name, lane }, i) => {
    const value = wide(`counter.${i}.value`);
    let low = 0;
    let high = 0;
    for (const v of value) {
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
    return { name, lane, at: moments(`counter.${i}.at`), value, low, high };
  });
  const levels = stack(spans, head.lanes.length);
  const sleeps = timed("sleep");
  const byLane = {
    gaps: groupBy(gaps.lane, head.lanes.length),
    segments: groupBy(segments.lane, head.lanes.length),
    sleeps: groupBy(sleeps.lane, head.lanes.length),
    waits: groupBy(waits.lane, head.lanes.length),
  };
  const busy = busyTracks(spans, head.lanes.length);
  const medians = medianDurations(spans, head.lanes.length);
  /** @type {LaneRun[]} */
  const lanes = head.lanes.map(({ name, kind }, index) => ({
    index,
    name,
    kind,
    slotRows: levels.slotRows[index],
    medians: medians[index],
    busy: busy[index],
    gaps: timedTrack(gaps, byLane.gaps.of(index), (i) => gaps.cause[i]),
    critical: timedTrack(segments, byLane.segments.of(index), (i) =>
      segments.cause[i] === 0 ? 0 : 1,
    ),
    sleeps: timedTrack(sleeps, byLane.sleeps.of(index), () => 0),
    waits: byLane.waits.of(index),
    counters: head.counters.flatMap((counter, i) => (counter.lane === index ? [i] : [])),
  }));
  return {
    head,
    number,
    /** Start and end of the spans. */
    first,
    last: first + head.makespan,
    /** Devices first, then the links between them, then the actors and threads that drive them. */
    inOrder: [...lanes].sort((a, b) => rankOf(a.kind) - rankOf(b.kind)),
    spans,
    gaps,
    segments,
    messages,
    waits,
    milestones,
    chunks,
    requests,
    counters,
    lanes,
    rowCount: levels.rowCount,
    turns: turnsOf(segments),
    sentBy: groupBy(messages.from, count),
    receivedBy: groupBy(messages.to, count),
    waitsFor: groupBy(waits.target, count),
    gapsBefore: groupBy(gaps.next, count),
    children: groupBy(spans.parent, count),
    /** Latest time of receipt of this message and all earlier ones. */
    received: receipts(messages),
  };
}

/**
 * @param {{ start: Float64Array, end: Float64Array }} of
 * @param {Int32Array} ids
 * @param {(i: number) => number} kindOf
 */
function timedTrack(of, ids, kindOf) {
  const sorted = ids.slice().sort((a, b) => of.start[a] - of.start[b]);
  return makeTrack(
    sorted,
    (i) => of.start[i],
    (i) => of.end[i],
    kindOf,
  );
}

/**
 * Segments at which the critical path changes its lane.
 * @param {{ count: number, lane: Int32Array, start: Float64Array }} segments
 */
function turnsOf({ count, lane, start }) {
  const id = [];
  for (let i = 1; i < count; i++) if (lane[i] !== lane[i - 1]) id.push(i);
  return { id, at: Float64Array.from(id, (i) => start[i]) };
}

/** @param {{ count: number, sent: Float64Array, delay: Float64Array }} messages */
function receipts(messages) {
  const latest = new Float64Array(messages.count);
  let last = -Infinity;
  for (let i = 0; i < messages.count; i++) {
    last = Math.max(last, messages.sent[i] + Math.max(0, messages.delay[i] - 1));
    latest[i] = last;
  }
  return latest;
}

/**
 * Assigns every span to a level below its parent on which no span overlaps it, and every level of
 * every slot to a row.
 * @param {{ count: number, lane: Int32Array, slot: Int32Array, parent: Int32Array,
 *   start: Float64Array, end: Float64Array, level: Int32Array, row: Int32Array }} spans
 * @param {number} laneCount
 */
function stack(spans, laneCount) {
  /** @type {number[][][]} end of the last span by lane, slot and level */
  const free = Array.from({ length: laneCount }, () => []);
  for (let i = 0; i < spans.count; i++) {
    const slots = free[spans.lane[i]];
    while (slots.length <= spans.slot[i]) slots.push([]);
    const levels = slots[spans.slot[i]];
    let level = spans.parent[i] < 0 ? 0 : spans.level[spans.parent[i]] + 1;
    while (level < levels.length && levels[level] > spans.start[i]) level += 1;
    while (levels.length <= level) levels.push(-Infinity);
    levels[level] = spans.end[i];
    spans.level[i] = level;
  }
  let rowCount = 0;
  const slotRows = free.map((slots) => {
    const rows = slots.map((levels) => {
      rowCount += levels.length;
      return rowCount - levels.length;
    });
    return [...rows, rowCount];
  });
  for (let i = 0; i < spans.count; i++) {
    spans.row[i] = slotRows[spans.lane[i]][spans.slot[i]] + spans.level[i];
  }
  return { rowCount, slotRows };
}

/**
 * @param {{ count: number, lane: Int32Array, parent: Int32Array, start: Float64Array,
 *   end: Float64Array }} spans
 * @param {number} laneCount
 */
function busyTracks(spans, laneCount) {
  /** @type {{ start: number[], end: number[] }[]} */
  const unions = Array.from({ length: laneCount }, () => ({ start: [], end: [] }));
  for (let i = 0; i < spans.count; i++) {
    if (spans.parent[i] >= 0) continue;
    const { start, end } = unions[spans.lane[i]];
    const last = end.length - 1;
    if (last >= 0 && spans.start[i] <= end[last]) end[last] = Math.max(end[last], spans.end[i]);
    else {
      start.push(spans.start[i]);
      end.push(spans.end[i]);
    }
  }
  return unions.map(({ start, end }) =>
    makeTrack(
      Int32Array.from(start.keys()),
      (i) => start[i],
      (i) => end[i],
      () => 0,
    ),
  );
}

/**
 * @param {{ count: number, lane: Int32Array, level: Int32Array, start: Float64Array,
 *   end: Float64Array }} spans
 * @param {number} laneCount
 */
function medianDurations(spans, laneCount) {
  /** @type {number[][][]} */
  const durations = Array.from({ length: laneCount }, () => []);
  for (let i = 0; i < spans.count; i++) {
    const levels = durations[spans.lane[i]];
    while (levels.length <= spans.level[i]) levels.push([]);
    levels[spans.level[i]].push(spans.end[i] - spans.start[i]);
  }
  return durations.map((levels) => levels.map(weightedMedian));
}

/**
 * Duration such that longer spans take half of the time. It describes the spans that matter for the
 * time rather than the many small ones.
 * @param {number[]} durations
 */
function weightedMedian(durations) {
  const sorted = Float64Array.from(durations).sort();
  let rest = sorted.reduce((sum, duration) => sum + duration, 0) / 2;
  for (let i = sorted.length - 1; i >= 0; i--) {
    rest -= sorted[i];
    if (rest <= 0) return sorted[i];
  }
  return 0;
}

/**
 * One track for each row, with the spans that pass the filter.
 * @param {Run} run
 * @param {Uint8Array | null} keep
 */
function makeRows(run, keep) {
  const { spans } = run;
  const kept = keep ? spans.row.map((row, i) => (keep[i] ? row : -1)) : spans.row;
  const rows = groupBy(kept, run.rowCount);
  return Array.from({ length: run.rowCount }, (_, row) =>
    makeTrack(
      rows.of(row),
      (i) => spans.start[i],
      (i) => spans.end[i],
      (i) => state.classes[run.number][i],
    ),
  );
}
