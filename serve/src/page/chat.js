/** The chat: its turns, the answer that is being written, and what a reload keeps. */

const $ = (id) => document.getElementById(id);
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");

/**
 * Turns of the conversation. A turn has a `role` and a `text`; an answer may have `thoughts`, `note` and `error`. A
 * question without an answer has `failed`, and is not sent again unless it is asked for.
 */
let turns = [];
/** What stops the answer that is being written; null if there is none. */
let running = null;

/** The values of these fields are kept while the tab is open, as the conversation is. */
const KEPT = ["key", "temperature", "longest", "system", "model"];

function keep(name, value) {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    // A browser may allow no storage; then a reload starts over.
  }
}

function kept(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

const save = () => keep("turns", JSON.stringify(turns));

function headers() {
  const key = $("key").value;
  return { "content-type": "application/json", ...(key ? { authorization: "Bearer " + key } : {}) };
}

const number = (id) => ($(id).value === "" ? undefined : Number($(id).value));

/** The elements of a turn. */
function turnElement(turn) {
  const place = element("article", "turn " + turn.role);
  place.setAttribute("aria-label", turn.role === "user" ? "You" : "Answer");
  showTurn(turn, place);
  return place;
}

/** Shows a turn in its place, in its present state. */
function showTurn(turn, place) {
  const parts = [];
  if (turn.thoughts) parts.push(thoughtsElement(turn, place));
  const message = element("div", "message " + turn.role);
  if (turn.role === "user") message.textContent = turn.text;
  else showMarkdown(turn.text, message);
  if (turn.text || turn.role === "user") parts.push(message);
  if (turn.reading && !turn.text && !turn.thoughts) parts.push(readingElement(turn.reading));
  if (turn.error) {
    const error = element("div", "error", turn.error);
    error.setAttribute("role", "alert");
    parts.push(error);
  }
  const foot = element("div", "foot");
  if (!turn.reading && turn.text) foot.append(copyButton(() => turn.text));
  if (!turn.reading && (turn.role === "assistant" || turn.failed) && turns.at(-1) === turn) {
    const again = element("button", "quiet", turn.failed ? "Try again" : "Regenerate");
    again.type = "button";
    again.addEventListener("click", regenerate);
    foot.append(again);
  }
  if (turn.note) foot.append(element("span", "note", turn.note));
  if (foot.childNodes.length > 0) parts.push(foot);
  place.replaceChildren(...parts);
}

/** The thoughts of an answer, closed unless the user has opened them. */
function thoughtsElement(turn, place) {
  const isOpen = place.querySelector(".thoughts")?.open ?? false;
  const text = element("div", "message");
  showMarkdown(turn.thoughts, text);
  const summary = element("summary", "", turn.reading && !turn.text ? "Thinking…" : "Thoughts");
  const made = element("details", "thoughts", summary, text);
  made.open = isOpen;
  return made;
}

/** What there is to see before the first token. */
function readingElement({ processed, total }) {
  if (!total) return element("div", "note reading", "waiting…");
  const bar = element("i", "");
  bar.style.width = (100 * processed) / total + "%";
  const meter = element("div", "meter", bar);
  const text = `reading the prompt, ${grouped(processed)} of ${grouped(total)} tokens`;
  return element("div", "note reading", text, meter);
}

/** Shows all turns. */
function showTurns() {
  const empty = element("p", "empty", "Ask something. The conversation stays in this tab.");
  $("log").replaceChildren(...(turns.length ? turns.map(turnElement) : [empty]));
  toEnd();
}

const isAtEnd = () => $("log").scrollHeight - $("log").scrollTop - $("log").clientHeight < 40;

function toEnd() {
  $("log").scrollTop = $("log").scrollHeight;
}

/** The conversation as the server gets it. */
function messages() {
  const system = $("system").value.trim();
  const sent = turns
    .filter((turn) => !turn.failed)
    .map(({ role, text }) => ({ role, content: text }));
  return system ? [{ role: "system", content: system }, ...sent] : sent;
}

/** The events of a streamed answer. */
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) if (event.startsWith("data: {")) yield JSON.parse(event.slice(6));
  }
}

/** What went wrong, as the server says it. */
async function reasonOf(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the server answered with status ${response.status}`;
  }
}

/** Asks for an answer to the conversation, and shows it as it is written. */
async function answer() {
  const turn = { role: "assistant", text: "", thoughts: "", reading: {} };
  const asked = turns.at(-1);
  const sent = messages();
  turns.push(turn);
  showTurns();
  const place = $("log").lastElementChild;
  running = new AbortController();
  $("send").textContent = "Stop";
  $("log").setAttribute("aria-busy", "true");
  let isDrawn = true;
  const draw = () => {
    if (!isDrawn) return;
    isDrawn = false;
    requestAnimationFrame(() => {
      isDrawn = true;
      if (!turn.reading) return;
      const follows = isAtEnd();
      showTurn(turn, place);
      if (follows) toEnd();
    });
  };
  try {
    const body = {
      model: $("model").value,
      messages: sent,
      temperature: number("temperature"),
      max_tokens: number("longest"),
    };
    const stream = { stream: true, return_progress: true, stream_options: { include_usage: true } };
    const response = await fetch("v1/chat/completions", {
      method: "POST",
      headers: headers(),
      signal: running.signal,
      body: JSON.stringify({ ...body, ...stream }),
    });
    if (!response.ok) throw new Error(await reasonOf(response));
    for await (const event of eventsOf(response)) {
      read(event, turn);
      draw();
    }
  } catch (error) {
    if (error.name === "AbortError") turn.note = "stopped";
    else turn.error = error.message;
  }
  finish(turn, asked);
}

/** Adds what an event says to the turn. */
function read(event, turn) {
  if (event.error) throw new Error(event.error.message);
  const { delta, finish_reason: reason } = event.choices[0] ?? {};
  if (event.prompt_progress) turn.reading = event.prompt_progress;
  turn.text += delta?.content ?? "";
  turn.thoughts += delta?.reasoning_content ?? "";
  if (reason === "length") turn.isCut = true;
  if (event.timings) {
    const {
      prompt_tokens: prompt,
      prompt_tokens_details: details,
      completion_tokens: generated,
    } = event.usage;
    const speed = event.timings.predicted_per_second?.toFixed(1) ?? "–";
    const cut = turn.isCut ? "; longest answer reached" : "";
    turn.note = `${grouped(prompt)} prompt tokens (${grouped(details.cached_tokens)} cached), ${grouped(generated)} generated at ${speed} tokens/s${cut}`;
  }
}

/** Ends an answer. One that ended before its first token leaves its question, which can be asked again. */
function settle(turn, asked) {
  delete turn.reading;
  if ((!turn.error && !turn.note) || turn.text || turn.thoughts) return;
  turns = turns.filter((other) => other !== turn);
  Object.assign(asked, { failed: true, error: turn.error, note: turn.note });
}

function finish(turn, asked) {
  settle(turn, asked);
  running = null;
  $("send").textContent = "Send";
  $("log").removeAttribute("aria-busy");
  const follows = isAtEnd();
  const top = $("log").scrollTop;
  showTurns();
  if (!follows) $("log").scrollTop = top;
  save();
}

/** Asks the last question again. */
function regenerate() {
  if (running) return;
  while (turns.at(-1)?.role === "assistant") turns.pop();
  const asked = turns.at(-1);
  if (!asked) return;
  for (const name of ["failed", "error", "note"]) delete asked[name];
  answer();
}

function send() {
  const text = $("text").value.trim();
  if (!text || running) return;
  $("text").value = "";
  turns = turns.filter((turn) => !turn.failed);
  turns.push({ role: "user", text });
  answer();
}

function listen() {
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running.abort();
    else send();
  });
  $("text").addEventListener("keydown", (event) => {
    // Enter that ends the composition of a character sends nothing.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") running?.abort();
  });
  $("clear").addEventListener("click", () => {
    running?.abort();
    turns = [];
    save();
    showTurns();
    $("text").focus();
  });
  for (const id of KEPT) $(id).addEventListener("change", () => keep(id, $(id).value));
  addEventListener("pagehide", () => {
    const [asked, turn] = turns.slice(-2);
    if (turn?.reading) {
      turn.note = "stopped";
      settle(turn, asked);
    }
    save();
  });
}

/** Restores what the tab had before it was loaded again. */
function restore() {
  for (const id of KEPT) if (kept(id) !== null && id !== "model") $(id).value = kept(id);
  $("system-row").open = $("system").value !== "";
  try {
    turns = JSON.parse(kept("turns") ?? "[]");
  } catch {
    turns = [];
  }
  showTurns();
}
