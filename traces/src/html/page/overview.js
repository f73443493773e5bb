/** The overview page: shows one group of runs, and opens a run in full. */

/** @param {string} id */
const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const groups = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".group")]);
const entries = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".entry")]);
const packedRuns = [...document.querySelectorAll("script.run")].map((s) => s.textContent ?? "");
const packedFrame = document.querySelector("script.frame")?.textContent ?? "";
for (const script of document.querySelectorAll("script.run, script.frame")) script.remove();

/** @param {Element} entry */
const groupOf = (entry) => groups.findIndex((group) => group.contains(entry));
/** @param {number} run */
const nameOf = (run) => entries[run].querySelector("h3 bdi")?.textContent ?? "";
/** @param {number} group */
const titleOf = (group) => groups[group].querySelector("h2")?.textContent ?? "";

/** @param {number} chosen */
function showGroup(chosen) {
  groups.forEach((group, at) => (group.hidden = at !== chosen));
  [...part("choice").children].forEach((button, at) => {
    button.setAttribute("aria-checked", String(at === chosen));
    /** @type {HTMLElement} */ (button).tabIndex = at === chosen ? 0 : -1;
  });
}

function makeChoice() {
  const choice = part("choice");
  groups.forEach((_, at) => {
    const button = element("button", "", titleOf(at));
    button.setAttribute("role", "radio");
    button.addEventListener("click", () => showGroup(at));
    choice.append(button);
  });
  choice.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step) return;
    const at = groups.findIndex((group) => !group.hidden);
    const next = (at + step + groups.length) % groups.length;
    showGroup(next);
    /** @type {HTMLElement} */ (choice.children[next]).focus();
    event.preventDefault();
  });
}

/** Turns the names of runs in pictures and tables into buttons that open them. */
function makeOpeners() {
  entries.forEach((entry, run) => {
    const name = /** @type {Element} */ (entry.querySelector("h3 bdi"));
    const button = element("button", "jump open");
    name.replaceWith(button);
    button.append(name);
    entry.addEventListener("click", () => (location.hash = `run-${run}`));
    entry.title = `Open the timeline of ${name.textContent}`;
  });
  for (const group of groups) {
    const own = entries.flatMap((entry, run) => (group.contains(entry) ? [run] : []));
    group.querySelectorAll("tbody tr").forEach((row, at) => {
      const cell = row.children[0];
      const button = element("button", "jump");
      button.append(...cell.childNodes);
      button.addEventListener("click", () => (location.hash = `run-${own[at]}`));
      cell.append(button);
    });
    const table = group.querySelector("table");
    if (table) makeSortable(table);
  }
}

/** @param {string} packed @returns {Promise<Record<string, string>>} */
async function unpack(packed) {
  return JSON.parse(new TextDecoder().decode(await inflate(packed)));
}

/**
 * Inserts parts into a template. Placeholders inside the inserted parts are not replaced.
 * @param {string} template
 * @param {Record<string, string>} parts
 */
function fillTemplate(template, parts) {
  const [start, ...pieces] = template.split("{{");
  const filled = pieces.map((piece) => {
    const end = piece.indexOf("}}");
    return (parts[piece.slice(0, end)] ?? "") + piece.slice(end + 2);
  });
  return start + filled.join("");
}

/**
 * Shows a page in a new frame each time, because a reused frame adds its earlier pages to the
 * browser's history.
 * @param {string} page
 */
function showPage(page) {
  const frame = document.createElement("iframe");
  frame.id = "frame";
  frame.title = "Timeline of the run";
  frame.srcdoc = page;
  part("frame").replaceWith(frame);
}

/** The run that is open, and the frame that shows it. */
let opened = -1;

/** @param {number} run @param {string} view as the run's page writes it */
async function openRun(run, view) {
  const [frame, parts] = await Promise.all([packedFrame, packedRuns[run]].map(unpack));
  let page = fillTemplate(frame.template, { ...frame, ...parts });
  const theme = document.documentElement.dataset.theme;
  if (theme) page = page.replace("<html ", `<html data-theme="${theme}" `);
  const safe = view.replace(/[&"<>]/g, (c) => `&#${c.charCodeAt(0)};`);
  page = page.replace("<html ", () => `<html data-view="${safe}" `);
  opened = run;
  showPage(page);
  const group = groupOf(entries[run]);
  part("opened").textContent = `${nameOf(run)} · ${titleOf(group)}`;
  for (const [id, other] of /** @type {[string, number][]} */ ([
    ["before", run - 1],
    ["after", run + 1],
  ])) {
    const button = /** @type {HTMLButtonElement} */ (part(id));
    button.disabled = !entries[other] || groupOf(entries[other]) !== group;
    button.onclick = () => location.replace(`#run-${other}`);
  }
  showGroup(group);
  part("all").hidden = true;
  part("viewer").hidden = false;
}

let scrolled = 0;

/** The address determines what is shown, so that the browser's back and forward buttons work. */
function follow() {
  const [, number, view] = /^#run-(\d+)(?:&(.*))?$/.exec(location.hash) ?? [];
  const run = Number(number ?? NaN);
  if (packedRuns[run] !== undefined) {
    if (!part("all").hidden) scrolled = scrollY;
    return openRun(run, view ?? "");
  }
  opened = -1;
  part("viewer").hidden = true;
  part("all").hidden = false;
  const none = element("div", "");
  none.id = "frame";
  part("frame").replaceWith(none);
  scrollTo(0, scrolled);
  return Promise.resolve();
}

function complain(/** @type {unknown} */ error) {
  part("broken").hidden = false;
  part("broken").textContent = `The run cannot be opened: ${error}. The tables are complete.`;
  throw error;
}

makeChoice();
makeOpeners();
showGroup(0);
part("back").addEventListener("click", () => (location.hash = ""));
part("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const now = root.dataset.theme;
  const dark = now ? now === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
// The run's page tells its view, so that the address of this page reopens it.
addEventListener("message", ({ source, data }) => {
  const frame = /** @type {HTMLIFrameElement} */ (document.getElementById("frame"));
  if (opened < 0 || source !== frame.contentWindow || typeof data?.view !== "string") return;
  history.replaceState(history.state, "", `#run-${opened}${data.view && "&" + data.view}`);
});
addEventListener("hashchange", () => follow().catch(complain));
follow().catch(complain);
