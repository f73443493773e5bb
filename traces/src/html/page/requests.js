/** Every request with its times: a table that only the script can make, as there may be many. */

/** Most requests listed. */
const REQUESTS_MAX = 1000;

/**
 * @typedef {object} Passage of a request through its milestones
 * @property {number} submitted
 * @property {number} admitted
 * @property {number} first token
 * @property {number} last token
 * @property {number} tokens
 * @property {number} prompt tokens
 * @property {string} end
 */

/**
 * @param {Run} run
 * @returns {Map<number, Passage>} by the request's place in the dictionary
 */
function passages(run) {
  const { milestones, head } = run;
  /** @type {Map<number, Passage>} */
  const all = new Map();
  for (let i = 0; i < milestones.at.length; i++) {
    const id = milestones.request[i];
    let passage = all.get(id);
    if (!passage) {
      const never = { submitted: NaN, admitted: NaN, first: NaN, last: NaN };
      all.set(id, (passage = { ...never, tokens: 0, prompt: 0, end: "on its way" }));
    }
    const at = milestones.at[i];
    const kind = head.milestones[milestones.kind[i]];
    if (kind === "submitted") {
      passage.submitted = at;
      passage.prompt = milestones.value[i];
    } else if (kind === "admitted") passage.admitted = at;
    else if (kind === "token") {
      if (passage.tokens === 0) passage.first = at;
      passage.last = at;
      passage.tokens += milestones.value[i];
    } else passage.end = kind;
  }
  return all;
}

/** Adds the table of each run to its part of the section. */
function listRequests() {
  for (const run of state.runs) {
    const side = document.querySelector(`#requests .side[data-side="${run.number}"]`);
    const all = [...passages(run)];
    if (!side || all.length === 0) continue;
    const heads = [
      "Request",
      "#Submitted",
      "#Queued",
      "#TTFT",
      "#TPOT",
      "#Prompt",
      "#Tokens",
      "End",
    ];
    const row = element("tr", "");
    for (const head of heads) {
      const cell = element("th", head.startsWith("#") ? "n" : "", head.replace("#", ""));
      cell.setAttribute("scope", "col");
      row.append(cell);
    }
    const body = element("tbody", "");
    for (const [id, passage] of all.slice(0, REQUESTS_MAX)) {
      body.append(requestRow(run.head.requests[id], passage));
    }
    const caption = element("caption", "", "Requests; a click shows one alone");
    side.append(element("table", "", caption, element("thead", "", row), body));
    if (all.length > REQUESTS_MAX) {
      side.append(element("p", "none", `and ${all.length - REQUESTS_MAX} more`));
    }
  }
}

/**
 * @param {string} name
 * @param {Passage} passage
 */
function requestRow(name, { submitted, admitted, first, last, tokens, prompt, end }) {
  const only = element("button", "jump", name);
  only.title = "Show this request alone";
  only.addEventListener("click", () => {
    input("filter-request").value = name;
    readFilters();
  });
  const row = element("tr", "", element("td", "", only));
  const tpot = tokens > 1 ? (last - first) / (tokens - 1) : NaN;
  for (const time of [submitted, admitted - submitted, first - submitted, tpot]) {
    const cell = element("td", "n", formatTime(time));
    if (!Number.isNaN(time)) cell.dataset.v = String(time);
    row.append(cell);
  }
  for (const count of [prompt, tokens]) {
    const cell = element("td", "n", formatGrouped(count));
    cell.dataset.v = String(count);
    row.append(cell);
  }
  row.append(element("td", "", end));
  return row;
}
