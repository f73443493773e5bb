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

/** @param {Band} band */
function laneName(band) {
  const { run, lane } = band;
  const busy = timeWithin(lane.busy, run.first, run.last) / Math.max(1, run.head.makespan);
  const slots = lane.slotRows.length - 1;
  const name = element("bdi", "name", lane.name);
  name.title = lane.name;
  const kind = [lane.kind, `${formatShare(busy)} busy`];
  if (slots > 1) kind.push(`${slots} slots`);
  const box = element("div", "lane", name, element("small", "", kind.join(" · ")));
  box.style.top = `${band.y}px`;
  box.style.height = `${band.height}px`;
  if (lane.medians.length > 1) box.append(foldButton(run, lane));
  for (const { index, y } of band.counters) {
    const label = element("small", "counter", element("bdi", "", run.counters[index].name));
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
