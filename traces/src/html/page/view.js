/** The state of the view in the fragment of the address, so that a link reopens the same view. */

/** The fragment that this page wrote or read last. */
let fragment = "";
let remembering = 0;

/** Writes the view into the address soon. Many changes at once are written together. */
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(writeView, 200);
}

/** @param {number} from @param {number} to */
const rangeText = (from, to) => `${Math.round(from)}..${Math.round(to)}`;

/** Everything that differs from the view of a page that was just opened. */
function viewText() {
  const view = new URLSearchParams();
  /** @param {string} key @param {string} value */
  const put = (key, value) => value && view.set(key, value);
  const [t0, t1] = target();
  if (t0 !== state.from || t1 !== state.to) put("t", rangeText(t0, t1));
  put("q", state.query.trim());
  for (const key of FILTERS) put(key, input(`filter-${key}`).value.trim());
  if (state.coloring !== "activity") put("color", state.coloring);
  put("hide", LAYERS.filter((layer) => !state[layer]).join(" "));
  if (state.nested !== "zoom") put("nested", state.nested);
  put("folded", [...state.folded].join(" ").replaceAll("/", "."));
  if (state.scroll > 0) put("y", String(Math.round(state.scroll)));
  if (state.selection) put("select", rangeText(state.selection.from, state.selection.to));
  if (state.pin) put("pin", `${state.pin.run}.${state.pin.index}`);
  if (state.tab !== firstTab()) put("tab", state.tab);
  const root = document.documentElement;
  if (root.classList.contains("no-panel")) put("panel", "closed");
  else put("panel", root.style.getPropertyValue("--panel").replace("px", ""));
  put("theme", root.dataset.theme ?? "");
  return view.toString();
}

function writeView() {
  const text = viewText();
  if (text === fragment) return;
  fragment = text;
  // In the page of many runs, that page has the address.
  if (parent !== window) return parent.postMessage({ view: text }, "*");
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

/** The view that the address, or the page of many runs, asks for. */
function askedView() {
  return document.documentElement.dataset.view ?? location.hash.slice(1);
}

/** @param {string | null} text @returns {[number, number] | null} */
function parseRange(text) {
  const found = /^(-?\d{1,16})\.\.(-?\d{1,16})$/.exec(text ?? "");
  if (!found || Number(found[1]) >= Number(found[2])) return null;
  return [Number(found[1]), Number(found[2])];
}

/** Shows a view; what it does not mention is as in a page that was just opened. @param {string} text */
function readView(text) {
  fragment = text;
  const view = new URLSearchParams(text);
  /** @param {string} key */
  const get = (key) => view.get(key) ?? "";
  const root = document.documentElement;
  for (const key of FILTERS) input(`filter-${key}`).value = get(key);
  input("query").value = state.query = get("q");
  const hidden = get("hide").split(" ");
  for (const layer of LAYERS) setLayer(layer, !hidden.includes(layer));
  const nested = get("nested");
  state.nested = nested === "all" || nested === "none" ? nested : "zoom";
  state.folded = new Set(get("folded").replaceAll(".", "/").split(" ").filter(Boolean));
  if (["light", "dark"].includes(get("theme"))) root.dataset.theme = get("theme");
  const range = parseRange(view.get("t")) ?? [state.from, state.to];
  show(range[0], range[1]);
  const selected = parseRange(view.get("select"));
  state.selection = selected && { from: selected[0], to: selected[1] };
  const pin = /^(\d)\.(\d{1,9})$/.exec(get("pin"));
  const known = pin && Number(pin[2]) < (state.runs[Number(pin[1])]?.spans.count ?? 0);
  state.pin = known ? { run: Number(pin[1]), index: Number(pin[2]) } : null;
  fillSelection();
  showTab(tabs.has(get("tab")) ? get("tab") : firstTab());
  state.coloring = Object.hasOwn(COLORINGS, get("color")) ? get("color") : "activity";
  input("coloring").value = state.coloring;
  classify();
  readFilters();
  layout.key = "";
  // Before the panel changes the size of the lanes, which draws them.
  if (palette) repaint();
  const width = Number(get("panel"));
  const kept = width >= 160 && width <= 4000 ? `${width}px` : "";
  root.style.setProperty("--panel", kept);
  togglePanel(get("panel") !== "closed");
  return Number(get("y")) || 0;
}

/** Follows a link into this page while it is open. */
function followView() {
  const text = location.hash.slice(1);
  if (text === fragment) return;
  const y = readView(text);
  drawAll();
  scroller.scrollTop = y;
}
