/** The search field and the filters. */

/** @param {string} id @returns {HTMLInputElement} */
const input = (id) => /** @type {HTMLInputElement} */ (document.getElementById(id));

/** Applies the filter and the search again. */
function apply() {
  state.shown = 0;
  state.total = 0;
  state.matches = [];
  state.match = -1;
  for (const run of state.runs) {
    const keep = passing(run, state.filter);
    const found = searching(run, state.query, keep);
    state.keep[run.number] = keep;
    state.found[run.number] = found;
    state.rows[run.number] = makeRows(run, keep);
    state.foundRows[run.number] = found && makeRows(run, found);
    state.total += run.spans.count;
    state.shown += keep ? keep.reduce((sum, kept) => sum + kept, 0) : run.spans.count;
    found?.forEach((is, index) => is && state.matches.push({ run: run.number, index }));
  }
  if (state.runs.length > 1) {
    state.matches.sort((a, b) => startOf(a) - startOf(b) || a.run - b.run);
  }
  tellMatches();
  const shown = formatGrouped(state.shown);
  const all = state.shown === state.total;
  const count = all ? `${shown} spans` : `${shown} of ${formatGrouped(state.total)} spans`;
  input("shown").textContent = count;
  redraw();
}

/** @param {SpanRef} span */
function startOf({ run, index }) {
  return state.runs[run].spans.start[index];
}

function tellMatches() {
  const count = formatGrouped(state.matches.length);
  const place = state.match >= 0 ? `${formatGrouped(state.match + 1)} of ${count}` : count;
  input("previous").disabled = input("next").disabled = state.matches.length === 0;
  input("match-count").textContent = state.query.trim() ? place : "";
}

/** @param {string} query */
function search(query) {
  input("query").value = query;
  state.query = query;
  apply();
}

/**
 * Goes to the next or previous match; the first time, to the first match in view.
 * @param {1 | -1} step
 */
function nextMatch(step) {
  const count = state.matches.length;
  if (count === 0) return;
  if (state.match < 0) {
    const from = target()[0];
    const first = state.matches.findIndex((match) => startOf(match) >= from);
    state.match = step > 0 ? Math.max(0, first) : ((first < 0 ? count : first) - 1 + count) % count;
  } else {
    state.match = (state.match + step + count) % count;
  }
  tellMatches();
  reveal(state.matches[state.match]);
}

/**
 * Brings a span into view at a visible size.
 * @param {SpanRef} span
 */
function reveal({ run, index }) {
  const { spans } = state.runs[run];
  const [start, end] = [spans.start[index], spans.end[index]];
  const [t0, t1] = target();
  let length = t1 - t0;
  const wide = ((end - start) * state.width) / length;
  if (wide < 6 || wide > state.width) length = Math.max(end - start, 1) * 12;
  if (length !== t1 - t0 || start < t0 + length * 0.05 || end > t1 - length * 0.05) {
    const middle = (start + end) / 2;
    glide(middle - length / 2, middle + length / 2);
  }
  const band = bandOf(run, spans.lane[index]);
  if (band && (band.y < state.scroll || band.y + band.height > state.scroll + state.height)) {
    const scroll = /** @type {HTMLElement} */ (document.getElementById("scroll"));
    scroll.scrollTop = band.y + band.height / 2 - state.height / 2;
  }
  redraw();
}

/** Pins a span and shows it. @param {SpanRef} span */
function goTo(span) {
  setPin(span);
  reveal(span);
}

/** @param {SpanRef | null} span */
function setPin(span) {
  state.pin = span;
  fillSelection();
  if (span) showTab("selected");
  redraw();
}

const FILTERS = ["lane", "activity", "request", "layer", "chunk"];

function readFilters() {
  const { filter } = state;
  filter.lane = input("filter-lane").value;
  filter.activity = input("filter-activity").value;
  for (const key of /** @type {("request" | "layer" | "chunk")[]} */ ([
    "request",
    "layer",
    "chunk",
  ])) {
    const field = input(`filter-${key}`);
    const numbers = parseNumbers(field.value);
    field.setCustomValidity(numbers === undefined ? "Numbers and ranges, such as 3, 5-8" : "");
    if (numbers !== undefined) filter[key] = numbers;
  }
  apply();
}

function clearFilters() {
  /** @type {HTMLFormElement} */ (document.getElementById("filters")).reset();
  readFilters();
}

function makeSearch() {
  /** @param {string} id @param {Set<string>} names */
  const fill = (id, names) => {
    const select = /** @type {HTMLElement} */ (document.getElementById(id));
    for (const name of ["", ...names]) {
      const option = document.createElement("option");
      option.value = name;
      option.textContent = name === "" ? "all" : name;
      select.append(option);
    }
  };
  const works = state.runs.flatMap(({ head, spans }) =>
    [...new Set(spans.activity)].sort((a, b) => a - b).map((kind) => head.activities[kind]),
  );
  fill("filter-lane", new Set(state.runs.flatMap(({ head }) => head.lanes.map((l) => l.name))));
  fill("filter-activity", new Set(works));
  input("filters").addEventListener("input", readFilters);
  input("filters").addEventListener("submit", (event) => event.preventDefault());
  input("filters").addEventListener("keydown", (event) => {
    if (event.key === "Escape") scroller.focus();
  });
  input("clear").addEventListener("click", clearFilters);
  let waiting = 0;
  input("query").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search(input("query").value), 60);
  });
  input("query").addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search("");
      input("scroll").focus();
    }
  });
  input("search").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    if (state.query !== input("query").value) search(input("query").value);
    nextMatch(1);
    input("scroll").focus();
  });
  input("previous").addEventListener("click", () => nextMatch(-1));
  input("next").addEventListener("click", () => nextMatch(1));
}
