/** Details of spans, gaps, waits and counters: the tooltip, and the panel of the pinned span. */

/** @typedef {[string, string][]} Facts */

const card = /** @type {HTMLElement} */ (document.getElementById("card"));

/** @param {Facts} facts */
function factList(facts) {
  const list = element("dl", "facts");
  for (const [name, value] of facts) {
    list.append(element("dt", "", name), element("dd", "", element("bdi", "", value)));
  }
  return list;
}

/**
 * @param {Run} run
 * @param {number} cause
 * @param {number} on lane plus one, 0 for none
 */
function causeText(run, cause, on) {
  const name = run.head.causes[cause] ?? "";
  return on > 0 ? `${name} on ${run.head.lanes[on - 1]?.name}` : name;
}

/**
 * @param {Run} run
 * @param {number} span
 */
function spanText(run, span) {
  const { spans, head } = run;
  const chunk = spans.chunk[span];
  const part = chunk >= 0 ? `, chunk ${head.chunks[chunk]}` : "";
  return `${head.names[spans.name[span]]} on ${head.lanes[spans.lane[span]].name}${part}`;
}

/**
 * Decodes a time difference stored as zigzag plus one; 0 for none.
 * @param {number} coded
 */
function earlier(coded) {
  if (coded === 0) return null;
  const zigzag = coded - 1;
  return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
}

/**
 * Why an outer span has no more rows of prompts; empty if its chunk was not limited.
 * @param {Run} run
 * @param {number} span
 */
function limitText({ spans, chunks, head }, span) {
  const chunk = spans.parent[span] < 0 ? spans.chunk[span] : -1;
  const limit = chunk < 0 ? 0 : chunks.limit[chunk];
  if (limit === 0) return "";
  if (limit === 1) return ", kept short for streams";
  return `, because stream ${head.streams[limit - 2]} was due in ${formatTime(chunks.slack[chunk])}`;
}

/**
 * @param {Run} run
 * @param {number} i
 * @returns {Facts}
 */
function spanFacts(run, i) {
  const { spans, head } = run;
  const start = spans.start[i];
  const duration = spans.end[i] - start;
  /** @type {Facts} */
  const facts = [];
  /** @param {string} name @param {string | null} value */
  const add = (name, value) => value !== null && facts.push([name, value]);
  add("Lane", `${head.lanes[spans.lane[i]].name}, slot ${spans.slot[i]}`);
  add("Activity", head.activities[spans.activity[i]]);
  add("Duration", formatTime(duration) + (spans.flags[i] & 1 ? "" : ", no end recorded"));
  const queued = earlier(spans.queued[i]);
  const submitted = earlier(spans.submitted[i]);
  if (queued !== null) add("Queued", `${formatTime(queued)} before start`);
  if (submitted !== null) add("Submitted", `${formatTime(submitted)} before start`);
  add("Start", formatMoment(start));
  add("End", formatMoment(spans.end[i]));
  if (spans.stage[i] > 0) add("Stage", String(spans.stage[i] - 1));
  if (spans.layer[i] > 0) add("Layer", String(spans.layer[i] - 1));
  if (spans.chunk[i] >= 0) add("Chunk", head.chunks[spans.chunk[i]]);
  if (spans.request[i] >= 0) add("Request", head.requests[spans.request[i]]);
  if (spans.rows[i] > 0) add("Rows", formatGrouped(spans.rows[i]) + limitText(run, i));
  if (spans.role[i] > 0) {
    const part =
      spans.drafted[i] > 0 ? `, ${spans.accepted[i]} of ${spans.drafted[i]} accepted` : "";
    add("Drafts", head.roles[spans.role[i] - 1] + part);
  }
  if (spans.wasted[i] > 0) add("Wasted rows", formatGrouped(spans.wasted[i]));
  if (spans.flags[i] & 4) add("Result", "discarded");
  add("Epoch", String(spans.epoch[i]));
  if (spans.bytes[i] > 0) {
    const rate = duration > 0 ? `, ${threeDigits(spans.bytes[i] / duration)} GB/s` : "";
    add("Bytes", formatBytes(spans.bytes[i]) + rate);
  }
  if (spans.flops[i] > 0) {
    const rate = duration > 0 ? `, ${threeDigits(spans.flops[i] / duration)} GFLOP/s` : "";
    add("FLOPs", formatCount(spans.flops[i]) + rate);
  }
  add("Slack", formatTime(spans.slack[i]));
  add("Critical path", onPath(run, i) ? "yes" : "no");
  for (const gap of run.gapsBefore.of(i)) {
    const blocker = run.gaps.blocker[gap];
    const why = causeText(run, run.gaps.cause[gap], run.gaps.on[gap]);
    const what = blocker >= 0 ? `: ${spanText(run, blocker)}` : "";
    add(
      "Lane idle before",
      `${formatTime(run.gaps.end[gap] - run.gaps.start[gap])}, ${why}${what}`,
    );
  }
  for (const wait of run.waitsFor.of(i)) {
    const { waits } = run;
    add("Awaited by", `${head.lanes[waits.lane[wait]].name}, ${head.modes[waits.mode[wait]]}`);
  }
  return facts;
}

/**
 * Whether the span or the outer span around it is on the critical path.
 * @param {Run} run
 * @param {number} span
 */
function onPath(run, span) {
  let outer = span;
  while (run.spans.parent[outer] >= 0) outer = run.spans.parent[outer];
  return (run.spans.flags[outer] & 2) !== 0;
}

/**
 * @param {Run} run
 * @param {number} i
 * @returns {Facts}
 */
function gapFacts(run, i) {
  const { gaps, head } = run;
  /** @type {Facts} */
  const facts = [
    ["Lane", `${head.lanes[gaps.lane[i]].name}, idle`],
    ["Duration", formatTime(gaps.end[i] - gaps.start[i])],
    ["Start", formatMoment(gaps.start[i])],
    ["End", formatMoment(gaps.end[i])],
  ];
  const slept = timeWithin(run.lanes[gaps.lane[i]].sleeps, gaps.start[i], gaps.end[i]);
  if (slept > 0) facts.push(["Thread asleep", formatTime(slept)]);
  if (gaps.blocker[i] >= 0) facts.push(["Delayed by", spanText(run, gaps.blocker[i])]);
  facts.push([
    "Next",
    gaps.next[i] >= 0 ? spanText(run, gaps.next[i]) : "no further span on this lane",
  ]);
  return facts;
}

/**
 * @param {Run} run
 * @param {number} i
 * @returns {Facts}
 */
function waitFacts(run, i) {
  const { waits, head, spans } = run;
  const target = waits.target[i];
  const duration = waits.end[i] - waits.start[i];
  /** @type {Facts} */
  const facts = [
    ["Lane", `${head.lanes[waits.lane[i]].name}, ${head.modes[waits.mode[i]]}`],
    ["Duration", formatTime(duration)],
    ["Slept", formatTime(waits.slept[i])],
    ["Polled", formatTime(waits.spun[i])],
  ];
  if (waits.predicted[i] > 0) {
    const actual = target >= 0 ? spans.end[target] - waits.start[i] : duration;
    facts.push(["Predicted", `${formatTime(waits.predicted[i])}, actual ${formatTime(actual)}`]);
    facts.push(["Margin", formatTime(waits.margin[i])]);
  }
  if (target >= 0) {
    facts.push(["Awaited span", spanText(run, target)]);
    facts.push(["Late", formatTime(Math.max(0, waits.end[i] - spans.end[target]))]);
  }
  return facts;
}

/**
 * @param {Place} place
 * @returns {{ title: string, facts: Facts }}
 */
function factsOf({ what, run: number, index, time }) {
  const run = state.runs[number];
  const { head } = run;
  if (what === "span") {
    return { title: head.names[run.spans.name[index]], facts: spanFacts(run, index) };
  }
  if (what === "gap") {
    const title = causeText(run, run.gaps.cause[index], run.gaps.on[index]);
    return { title, facts: gapFacts(run, index) };
  }
  if (what === "wait") {
    return { title: head.names[run.waits.name[index]], facts: waitFacts(run, index) };
  }
  const counter = run.counters[index];
  const at = firstAbove(counter.at, time ?? 0) - 1;
  const value = at >= 0 ? formatGrouped(counter.value[at]) : "none yet";
  const range = `${formatGrouped(counter.low)} to ${formatGrouped(counter.high)}`;
  return {
    title: counter.name,
    facts: [
      ["Lane", head.lanes[counter.lane].name],
      ["Value", value],
      ["Range", range],
    ],
  };
}

/**
 * Shows the tooltip beside the pointer, or hides it.
 * @param {Place | null} place
 * @param {number} x in the window
 * @param {number} y in the window
 */
function showCard(place, x, y) {
  card.hidden = place === null;
  if (!place) return;
  const { title, facts } = factsOf(place);
  card.replaceChildren(element("h3", place.what, element("bdi", "", title)), factList(facts));
  const { offsetWidth: width, offsetHeight: height } = card;
  const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
  const top = y + 16 + height > innerHeight ? innerHeight - height - 8 : y + 16;
  card.style.left = `${Math.max(4, left)}px`;
  card.style.top = `${Math.max(4, top)}px`;
}

/**
 * Messages of the pinned span, with buttons that lead to the span at the other end.
 * @param {Run} run
 * @param {Int32Array} ids
 * @param {boolean} incoming
 */
function messageList(run, ids, incoming) {
  const { messages, head } = run;
  const heads = ["Message", incoming ? "From" : "To", "Delay", "Bytes", "Stalled"];
  const row = element("tr", "", ...heads.map((name) => element("th", "", name)));
  const body = element("tbody", "");
  for (const id of ids.subarray(0, 200)) {
    const other = incoming ? messages.from[id] : messages.to[id];
    const lane = incoming ? messages.fromLane[id] : messages.toLane[id] - 1;
    const place = lane >= 0 ? head.lanes[lane].name : "not received";
    const stalled = messages.stall[id]
      ? `${formatTime(messages.stalled[id])}, ${head.stalls[messages.stall[id] - 1]}`
      : "–";
    const delay = messages.delay[id] ? formatTime(messages.delay[id] - 1) : "not received";
    const end = element(other >= 0 ? "button" : "span", "jump");
    end.textContent = other >= 0 ? spanText(run, other) : place;
    if (other >= 0) end.addEventListener("click", () => goTo({ run: run.number, index: other }));
    const cells = [
      head.names[messages.name[id]],
      end,
      delay,
      formatBytes(messages.bytes[id]),
      stalled,
    ];
    body.append(element("tr", "", ...cells.map((cell) => element("td", "", cell))));
  }
  const table = element("table", "", element("thead", "", row), body);
  return element("div", "scrolled", table);
}

/** Fills the panel's first tab: the selected range and the pinned span. */
function fillSelection() {
  const body = /** @type {HTMLElement} */ (document.getElementById("selected-body"));
  body.replaceChildren();
  const { pin, selection } = state;
  if (selection) body.append(rangeTable(selection.from, selection.to));
  if (pin) {
    const run = state.runs[pin.run];
    const { title, facts } = factsOf({ what: "span", ...pin });
    body.append(element("h3", "", element("bdi", "", title)), factList(facts));
    const parent = run.spans.parent[pin.index];
    if (parent >= 0) {
      const up = element("button", "jump");
      up.textContent = `Parent: ${spanText(run, parent)}`;
      up.addEventListener("click", () => goTo({ run: pin.run, index: parent }));
      body.append(element("p", "", up));
    }
    for (const [name, ids, incoming] of /** @type {[string, Int32Array, boolean][]} */ ([
      ["Incoming messages", run.receivedBy.of(pin.index), true],
      ["Outgoing messages", run.sentBy.of(pin.index), false],
    ])) {
      body.append(element("h4", "", `${name}: ${ids.length}`));
      if (ids.length > 0) body.append(messageList(run, ids, incoming));
    }
  }
  if (!pin && !selection) {
    const hint = "Click a span to pin it here. Shift + drag selects a time range.";
    body.append(element("p", "none", hint));
  }
}

/**
 * Lanes on whose work a lane waited within a range, the longest awaited first.
 * @param {Run} run
 * @param {LaneRun} lane
 * @param {number} from
 * @param {number} to
 */
function awaitedWithin(run, lane, from, to) {
  const { start, end, id } = lane.gaps;
  /** @type {Map<number, number>} */
  const times = new Map();
  const stop = firstFrom(start, to);
  for (let i = firstAbove(end, from); i < stop; i++) {
    const on = run.gaps.on[id[i]];
    const time = Math.min(to, end[i]) - Math.max(from, start[i]);
    if (on > 0) times.set(on, (times.get(on) ?? 0) + time);
  }
  const longest = [...times].sort((a, b) => b[1] - a[1]);
  return longest.map(([on]) => run.head.lanes[on - 1]?.name ?? "");
}

/**
 * The cause of most of a lane's idle time within a range; of a dependency with what it was on.
 * @param {Run} run
 * @param {LaneRun} lane
 * @param {number} from
 * @param {number} to
 */
function mainCause(run, lane, from, to) {
  let [main, most] = ["", 0];
  run.head.causes.forEach((name, cause) => {
    const time = timeWithin(lane.gaps, from, to, cause);
    if (time > most) [main, most] = [name, time];
  });
  if (most === 0) return "–";
  const on = main === "dependency" ? awaitedWithin(run, lane, from, to) : [];
  const named = on.slice(0, 2).join(" and ") + (on.length > 2 ? " and others" : "");
  return `${main}${named === "" ? "" : ` on ${named}`}, ${formatTime(most)}`;
}

/**
 * Busy and idle time of each lane within a range.
 * @param {number} from
 * @param {number} to
 */
function rangeTable(from, to) {
  const heads = ["Lane", "Busy", "Share", "Idle", "Main idle cause"];
  const row = element("tr", "", ...heads.map((name) => element("th", "", name)));
  const body = element("tbody", "");
  for (const { run, lane } of layout.bands) {
    // Time outside of the run is not idle time.
    const length = Math.max(0, Math.min(to, run.last) - Math.max(from, run.first));
    const busy = timeWithin(lane.busy, from, to);
    const top = mainCause(run, lane, from, to);
    const share = formatShare(length > 0 ? busy / length : NaN);
    const title = state.runs.length > 1 ? `${"AB"[run.number]} ${lane.name}` : lane.name;
    const cells = [title, formatTime(busy), share, formatTime(Math.max(0, length - busy)), top];
    body.append(element("tr", "", ...cells.map((cell) => element("td", "", cell))));
  }
  const caption = `${formatTime(to - from)} from ${formatMoment(from, (to - from) / 1000)}`;
  const table = element("table", "", element("caption", "", caption));
  table.append(element("thead", "", row), body);
  return element("div", "scrolled", table);
}
