/** The state of the server beside the chat: models, clients, and how busy the devices are. */

const megabytes = (bytes) => grouped(Math.round(bytes / 1e6)) + " MB";
const milliseconds = (ms) => (ms == null ? "–" : ms.toFixed(ms < 10 ? 1 : 0));

/** A table; the columns after the first are numbers. */
function table(heads, rows) {
  const row = (tag, values) =>
    element("tr", "", ...values.map((value, i) => element(tag, i ? "n" : "", String(value))));
  const body = rows.map((values) => row("td", values));
  const made = element(
    "table",
    "",
    element("thead", "", row("th", heads)),
    element("tbody", "", ...body),
  );
  return element("div", "scrolled", made);
}

/** Numbers under their names, some with a remark under them. */
function figures(rows) {
  const figure = ([name, value, remark]) => {
    const dd = element("dd", "", String(value), ...(remark ? [element("small", "", remark)] : []));
    return element("div", "", element("dt", "", name), dd);
  };
  return element("dl", "figures", ...rows.map(figure));
}

function modelState(model) {
  if (!model.loaded) return "not loaded";
  return model.expires_s == null ? "loaded" : `loaded, ${model.expires_s.toFixed(0)} s`;
}

/** The names of the models to choose from; the choice stays. */
function showModels(models) {
  if ($("model").length === models.length) return;
  const chosen = $("model").value || kept("model");
  $("model").replaceChildren(...models.map((model) => new Option(model.name)));
  if (models.some((model) => model.name === chosen)) $("model").value = chosen;
}

function showState(state) {
  $("phase").textContent = `${state.version}, ${state.phase}`;
  showModels(state.models);
  $("timeline").href = "debug/timeline?seconds=10&model=" + encodeURIComponent($("model").value);
  const rows = state.models.map((model) => [
    model.name,
    `${model.parameters} ${model.format}`,
    megabytes(model.bytes),
    modelState(model),
  ]);
  const parts = [element("h2", "", "Models"), table(["model", "weights", "file", "state"], rows)];
  for (const model of state.models.filter((model) => model.state))
    parts.push(...engineElements(model));
  $("state").replaceChildren(...parts);
}

function engineElements({ name, devices, state }) {
  const used = element("i", "");
  used.style.width = Math.round((100 * state.kv_pages_leased) / Math.max(1, state.kv_pages)) + "%";
  const meter = element("div", "meter", used);
  meter.title = "KV pages that requests lease";
  const parts = [
    element("h2", "", `${name} on ${devices.join(", ")}`),
    figures([
      ["Running", state.running],
      ["Waiting", state.waiting],
      ["Queue", state.policy],
      ["KV pages", grouped(state.kv_pages_leased), `of ${grouped(state.kv_pages)}`],
      ["Cached", grouped(state.kv_pages_cached), "pages"],
    ]),
    meter,
  ];
  const clients = state.clients.map((client) => [
    client.client,
    client.running,
    client.waiting,
    client.requests,
    grouped(client.generated_tokens),
    milliseconds(client.ttft_p50_ms),
    milliseconds(client.tpot_p50_ms),
  ]);
  if (clients.length) {
    parts.push(element("h2", "", "Clients"));
    parts.push(
      table(["client", "running", "waiting", "requests", "tokens", "TTFT ms", "TPOT ms"], clients),
    );
  }
  return parts;
}

/** How busy a device was in each hundredth of the time, and in all. */
function lane({ name, busy, cells }) {
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const share = Math.round(100 * busy) + " %";
  const d = cells.map((part, at) => (part ? `M${at} 1v-${part}h1v${part}z` : "")).join("");
  const label = `${name} was busy ${share} of the time`;
  const size = { viewBox: `0 0 ${cells.length} 1`, preserveAspectRatio: "none" };
  const bars = svg("svg", { ...size, role: "img", "aria-label": label });
  bars.append(svg("path", { d }));
  return element("div", "lane", element("span", "", name), bars, element("span", "", share));
}

async function refreshLanes() {
  const model = encodeURIComponent($("model").value);
  const response = await fetch("debug/lanes?seconds=10&model=" + model, { headers: headers() });
  if (!response.ok)
    return $("lanes").replaceChildren(element("p", "note", await reasonOf(response)));
  const { lanes } = await response.json();
  $("lanes").replaceChildren(...lanes.map(lane));
}

const isPanelShown = () => !document.body.classList.contains("no-panel");

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch("debug/state", { headers: headers() });
    if (!response.ok) throw new Error(await reasonOf(response));
    showState(await response.json());
    if (isPanelShown()) await refreshLanes();
  } catch (error) {
    $("phase").textContent = error.message;
  }
}

function showPanel(isShown) {
  document.body.classList.toggle("no-panel", !isShown);
  $("toggle-panel").setAttribute("aria-pressed", String(isShown));
}

function showSettings(isShown) {
  $("settings").hidden = !isShown;
  $("toggle-settings").setAttribute("aria-pressed", String(isShown));
}

const isNarrow = () => matchMedia("(max-width: 860px)").matches;

restore();
listen();
showPanel(!isNarrow());
showSettings(!isNarrow());
$("toggle-panel").addEventListener("click", () => showPanel(!isPanelShown()));
$("toggle-settings").addEventListener("click", () => showSettings($("settings").hidden));
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
});
$("key").addEventListener("change", refresh);
refresh();
setInterval(refresh, 1000);
