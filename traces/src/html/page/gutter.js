/** Draws the names of lanes and counters beside the canvas. */

const gutter = /** @type {HTMLElement} */ (document.getElementById("gutter"));

/** Moves the names to the current positions of the lanes. */
function fillGutter() {
  gutter.replaceChildren();
  for (const { run, y } of layout.titles) {
    const letter = element("span", "letter", "AB"[run.number]);
    const title = element("div", "run-title", letter, element("bdi", "", run.head.title));
    title.style.top = `${y}px`;
    gutter.append(title);
  }
  for (const band of layout.bands) gutter.append(laneName(band));
}

/** Least and largest width of the names, in pixels. */
const GUTTER = { least: 128, most: 260 };

/**
 * What is said below the name of a lane.
 * @param {Run} run
 * @param {LaneRun} lane
 */
function captionOf(run, lane) {
  const busy = timeWithin(lane.busy, run.first, run.last) / Math.max(1, run.head.makespan);
  const slots = lane.slotRows.length - 1;
  const parts = [lane.kind, `${formatShare(busy)} busy`];
  if (slots > 1) parts.push(`${slots} slots`);
  return parts.join(" · ");
}

/** Makes the column of names as wide as the longest name and caption, but at most a third of the page. */
function fitGutter() {
  const probe = element("div", "lane");
  probe.style.cssText = "visibility: hidden; width: max-content;";
  for (const run of state.runs) {
    for (const lane of run.inOrder) {
      probe.append(element("bdi", "name", lane.name));
      probe.append(element("small", "", captionOf(run, lane)));
      for (const index of lane.counters) {
        probe.append(element("small", "", run.counters[index].name));
      }
    }
  }
  gutter.append(probe);
  const wanted = Math.ceil(probe.getBoundingClientRect().width) + 1;
  probe.remove();
  const most = Math.max(GUTTER.least, Math.min(GUTTER.most, Math.floor(innerWidth / 3)));
  const width = Math.min(most, Math.max(GUTTER.least, wanted));
  document.documentElement.style.setProperty("--gutter", `${width}px`);
}

/** @param {Band} band */
function laneName(band) {
  const { run, lane } = band;
  const name = element("bdi", "name", lane.name);
  name.title = lane.name;
  const caption = element("small", "", captionOf(run, lane));
  caption.title = caption.textContent ?? "";
  const box = element("div", "lane", name, caption);
  box.style.top = `${band.y}px`;
  box.style.height = `${band.height}px`;
  if (lane.medians.length > 1) box.append(foldButton(run, lane));
  for (const { index, y } of band.counters) {
    const label = element("small", "counter", element("bdi", "", run.counters[index].name));
    label.title = run.counters[index].name;
    label.style.top = `${y - band.y + 8}px`;
    box.append(label);
  }
  return box;
}

/**
 * @param {Run} run
 * @param {LaneRun} lane
 */
function foldButton(run, lane) {
  const key = `${run.number}/${lane.index}`;
  const folded = state.folded.has(key);
  const button = element("button", "fold", folded ? "▸" : "▾");
  button.setAttribute("aria-expanded", String(!folded));
  button.setAttribute("aria-label", `Nested spans of ${lane.name}`);
  button.title = folded ? "Show nested spans" : "Hide nested spans";
  button.addEventListener("click", () => {
    if (folded) state.folded.delete(key);
    else state.folded.add(key);
    layout.key = "";
    redraw();
  });
  return button;
}

/** After a layout change, keeps the lane in the middle of the view where it is. */
function laidOut() {
  const scroll = /** @type {HTMLElement} */ (document.getElementById("scroll"));
  const extent = /** @type {HTMLElement} */ (document.getElementById("extent"));
  const kept = anchor && bandOf(anchor.run, anchor.lane);
  extent.style.height = `${Math.max(layout.height, state.height)}px`;
  if (kept && anchor) {
    scroll.scrollTop = kept.y - anchor.above;
    state.scroll = scroll.scrollTop;
  }
  fillGutter();
}

/** The lane to keep in place, and its distance from the top of the view in pixels. */
/** @type {{ run: number, lane: number, above: number } | null} */
let anchor = null;

/**
 * Remembers the lane at a height, so that it stays there when other lanes unfold.
 * @param {number} y in pixels from the top of the canvas
 */
function keepAt(y) {
  const at = state.scroll + y;
  const band = layout.bands.find((band) => at >= band.y && at < band.y + band.height);
  anchor = band
    ? { run: band.run.number, lane: band.lane.index, above: band.y - state.scroll }
    : null;
}
