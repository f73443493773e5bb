/** Table of all requests with their times. The script creates it, because there may be many. */

/** Most requests listed. */
const REQUESTS_MAX = 1000;

/**
 * @typedef {object} Progress milestones of a request
 * @property {number} submitted
 * @property {number} admitted
 * @property {number} first token
 * @property {number} last token
 * @property {number} tokens
 * @property {number} prompt tokens
 * @property {number} target for the time between two tokens
 * @property {number} worst time between two tokens
 * @property {number} late such times longer than the target
 * @property {string} end
 */

/**
 * @param {Run} run
 * @returns {Map<number, Progress>} by the request's dictionary index
 */
function passages(run) {
  const { milestones, head } = run;
  /** @type {Map<number, Progress>} */
  const all = new Map();
  for (let i = 0; i < milestones.at.length; i++) {
    const id = milestones.request[i];
    let progress = all.get(id);
    if (!progress) {
      const never = { submitted: NaN, admitted: NaN, first: NaN, last: NaN, worst: NaN };
      const target = run.requests.target[id] - 1;
      const none = { tokens: 0, prompt: 0, late: 0, end: "in progress" };
      all.set(id, (progress = { ...never, ...none, target: target < 0 ? NaN : target }));
    }
    const at = milestones.at[i];
    const kind = head.milestones[milestones.kind[i]];
    if (kind === "submitted") {
      progress.submitted = at;
      progress.prompt = milestones.value[i];
    } else if (kind === "admitted") progress.admitted = at;
    else if (kind === "token") {
      if (progress.tokens === 0) progress.first = at;
      // Tokens of one moment arrive together.
      const gap = at - progress.last;
      if (gap > 0) progress.worst = Math.max(gap, progress.worst || 0);
      if (gap > progress.target) progress.late += 1;
      progress.last = at;
      progress.tokens += milestones.value[i];
    } else if (kind !== "token gap") progress.end = kind;
  }
  return all;
}

/** Adds the table of requests of each run to the section. */
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
      "#Worst gap",
      "#Late gaps",
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
    for (const [id, progress] of all.slice(0, REQUESTS_MAX)) {
      body.append(requestRow(run.head.requests[id], progress));
    }
    const caption = element("caption", "", "Requests (click one to show only its spans)");
    side.append(element("table", "", caption, element("thead", "", row), body));
    if (all.length > REQUESTS_MAX) {
      side.append(element("p", "none", `and ${all.length - REQUESTS_MAX} more`));
    }
  }
}

/**
 * @param {string} name
 * @param {Progress} progress
 */
function requestRow(name, progress) {
  const { submitted, admitted, first, last, tokens, prompt, target, worst, late, end } = progress;
  const only = element("button", "jump", name);
  only.title = "Show only this request";
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
  const ofTarget = Number.isNaN(target) ? "" : `, target ${formatTime(target)}`;
  const gap = element("td", "n", formatTime(worst) + ofTarget);
  if (!Number.isNaN(worst)) gap.dataset.v = String(worst);
  const lates = element("td", "n", Number.isNaN(target) ? "–" : formatGrouped(late));
  if (!Number.isNaN(target)) lates.dataset.v = String(late);
  row.append(gap, lates);
  for (const count of [prompt, tokens]) {
    const cell = element("td", "n", formatGrouped(count));
    cell.dataset.v = String(count);
    row.append(cell);
  }
  row.append(element("td", "", end));
  return row;
}
