/** The panel of tables: tabs, sorting and width. Also theme and help. */

/** @type {Map<string, HTMLButtonElement>} */
const tabs = new Map();

function makeTabs() {
  const list = /** @type {HTMLElement} */ (document.getElementById("tabs"));
  for (const section of document.querySelectorAll("#panel > section")) {
    const title = section.querySelector("h2")?.textContent ?? "";
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `tab-${section.id}`;
    tab.textContent = title;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", section.id);
    tab.addEventListener("click", () => showTab(section.id));
    section.setAttribute("role", "tabpanel");
    tabs.set(section.id, tab);
    list.append(tab);
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const ids = [...tabs.keys()];
    const at = ids.findIndex((id) => tabs.get(id) === document.activeElement);
    const id = ids[(at + step + ids.length) % ids.length];
    showTab(id);
    tabs.get(id)?.focus();
    event.stopPropagation();
  });
  showTab(firstTab());
}

/** The tab that is shown first. */
function firstTab() {
  return tabs.has("compare") ? "compare" : "summary";
}

/** @param {string} id */
function showTab(id) {
  state.tab = id;
  for (const [key, tab] of tabs) {
    const chosen = key === id;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    const section = /** @type {HTMLElement} */ (document.getElementById(key));
    section.hidden = !chosen;
  }
  remember();
}

/** Makes every table sortable, and adds buttons that find the spans of a row. */
function enhanceTables() {
  for (const table of document.querySelectorAll("#panel > section table")) {
    makeSortable(table);
    const jump = /** @type {HTMLElement} */ (table).dataset.jump ?? "";
    if (!jump.startsWith("op:")) continue;
    for (const row of table.querySelectorAll("tbody tr")) {
      const cell = row.children[Number(jump.slice(3))];
      const name = cell?.textContent ?? "";
      const find = element("button", "jump");
      find.append(...cell.childNodes);
      find.title = "Find the spans of this op";
      find.addEventListener("click", () => search(name));
      cell.append(find);
    }
  }
}

/** @param {boolean} [open] */
function togglePanel(open) {
  const root = document.documentElement;
  const closed = open === undefined ? !root.classList.contains("no-panel") : !open;
  root.classList.toggle("no-panel", closed);
  document.getElementById("toggle-panel")?.setAttribute("aria-pressed", String(!closed));
  resize();
}

/** Whether the tables are beside the lanes, not below them. */
function isBeside() {
  return matchMedia("(min-width: 1000px)").matches;
}

/** Sets the size of the panel in pixels; null for the default. @param {number | null} size */
function setPanel(size) {
  const most = (isBeside() ? innerWidth : innerHeight) * 0.75;
  const kept = size === null ? "" : `${Math.round(Math.min(most, Math.max(160, size)))}px`;
  document.documentElement.style.setProperty("--panel", kept);
  resize();
}

function makeSplitter() {
  const splitter = /** @type {HTMLElement} */ (document.getElementById("splitter"));
  const panel = /** @type {HTMLElement} */ (document.getElementById("panel"));
  splitter.addEventListener("pointerdown", (down) => {
    splitter.setPointerCapture(down.pointerId);
    /** @param {PointerEvent} move */
    const drag = (move) =>
      setPanel(isBeside() ? innerWidth - move.clientX : innerHeight - move.clientY);
    splitter.addEventListener("pointermove", drag);
    const stop = () => splitter.removeEventListener("pointermove", drag);
    splitter.addEventListener("pointerup", stop, { once: true });
    splitter.addEventListener("pointercancel", stop, { once: true });
  });
  splitter.addEventListener("dblclick", () => setPanel(null));
  splitter.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: 40, ArrowUp: 40, ArrowRight: -40, ArrowDown: -40 }[event.key];
    if (!step) return;
    setPanel((isBeside() ? panel.offsetWidth : panel.offsetHeight) + step);
    event.preventDefault();
    event.stopPropagation();
  });
}

const darkMedia = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : darkMedia.matches;
}

function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  repaint();
}

/** Recreates everything that depends on the theme or the screen's resolution. */
function repaint() {
  palette = makePalette(pen, isDark(), state.ratio, state.runs[0].head);
  drawWhole();
  fillLegend();
  redraw();
}

/** Fills the legend with the activities and idle causes that occur in the runs. */
function fillLegend() {
  const legend = /** @type {HTMLElement} */ (document.getElementById("legend"));
  const work = new Set();
  const causes = new Set();
  for (const run of state.runs) {
    for (const kind of state.classes[run.number]) work.add(kind);
    for (const cause of run.gaps.cause) causes.add(cause);
  }
  /** @param {string} fill @param {CanvasPattern | null} hatch @param {string} name */
  const entry = (fill, hatch, name) => {
    const swatch = document.createElement("canvas");
    swatch.width = Math.round(22 * state.ratio);
    swatch.height = Math.round(12 * state.ratio);
    const brush = contextOf(swatch);
    brush.scale(state.ratio, state.ratio);
    brush.fillStyle = fill;
    brush.fillRect(0, 0, 22, 12);
    if (hatch) {
      brush.fillStyle = hatch;
      brush.fillRect(0, 0, 22, 12);
    }
    brush.strokeStyle = palette.faint;
    brush.strokeRect(0, 0, 22, 12);
    return element("span", "entry", swatch, element("bdi", "", name));
  };
  const what = state.coloring[0].toUpperCase() + state.coloring.slice(1);
  const row = element("div", "", element("b", "", what));
  for (const { name, shades, hatch } of palette.work.filter((_, i) => work.has(i))) {
    row.append(entry(shades[0].fill, hatch, name));
  }
  const idle = element("div", "", element("b", "", "Idle cause"));
  for (const { name, fill, hatch } of palette.causes.filter((_, i) => causes.has(i))) {
    idle.append(entry(fill, hatch, name));
  }
  const marks = element("div", "", element("b", "", "Marks"));
  marks.append(entry(palette.critical, null, "critical path"));
  if (state.runs.some((run) => run.lanes.some(({ sleeps }) => sleeps.id.length > 0))) {
    marks.append(entry(palette.sleep, null, "thread asleep"));
  }
  if (state.runs.some((run) => run.waits.count > 0)) {
    marks.append(
      entry(palette.line, null, "wait: asleep"),
      entry(palette.spun, null, "wait: polling"),
      entry(palette.late, null, "wait: late"),
    );
  }
  legend.replaceChildren(row, idle, marks);
}
