// Tests the timeline page with clicks and keys in headless Chromium. See run.sh.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const folder = process.argv[2] ?? process.env.PAGES ?? "";
const facts = JSON.parse(readFileSync(join(folder, "facts.json"), "utf8"));
const profile = mkdtempSync(join(tmpdir(), "timeline-page-"));

/** @type {import("playwright-core").BrowserContext} */
let browser;
/** @type {import("playwright-core").Page} */
let page;
/** Errors and warnings of all pages. @type {string[]} */
const faults = [];
/** URLs that any page requested. @type {string[]} */
const requests = [];

const options = {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
  viewport: { width: 1440, height: 900 },
};

/** @param {string} name */
const address = (name) => `file://${join(folder, name)}`;

/** Opens a page without waiting for a timeline. @param {string} name @param {object} [settings] */
async function bare(name, settings = {}) {
  await page?.close();
  page = await browser.newPage();
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce", ...settings });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(address(name));
}

/** Opens a timeline. @param {string} name @param {object} [settings] */
async function open(name, settings = {}) {
  await bare(name, settings);
  await page.waitForFunction(() => performance.getEntriesByName("drawn").length > 0);
  await settled();
}

/** Waits until the page has drawn its current state. */
async function settled() {
  await page.waitForTimeout(30);
  await page.waitForFunction(() => !window.lapwing.moving);
}

/** @param {string} key */
async function press(key) {
  await page.keyboard.press(key);
  await settled();
}

/** @template T @param {string} name @returns {Promise<T>} */
const read = (name) => page.evaluate((name) => window.lapwing[name], name);

/** Length of the visible range. */
async function visible() {
  const [from, to] = await read("range");
  return to - from;
}

/** @param {string} selector */
const text = async (selector) => (await page.locator(selector).first().innerText()).trim();

/** The number in a text such as `1 234 of 5 678`. @param {string} text */
const number = (text) => Number(text.replace(/[\u202f\s]/g, "").match(/\d+/)?.[0]);

/** @param {number} a @param {number} b @param {number} share */
function about(a, b, share, what = "") {
  assert.ok(Math.abs(a - b) <= Math.abs(b) * share, `${what} ${a} is not about ${b}`);
}

/**
 * Judges a time in ms, if that is asked for: on a busy machine it says nothing of the page.
 * @param {number} time @param {number} most
 */
function within(time, most) {
  if (process.env.LAPWING_JUDGE_TIMES === "1") assert.ok(time < most, `${time} ms`);
}

/** Middle of the lanes' canvas. */
async function middle() {
  const box = await page.locator("#lanes").boundingBox();
  assert.ok(box);
  return { x: box.x + box.width / 2, y: box.y + 60, box };
}

/** @param {string} query */
async function searchFor(query) {
  await press("/");
  await page.keyboard.type(query);
  await page.waitForTimeout(120);
  await settled();
}

before(async () => {
  browser = await chromium.launchPersistentContext(profile, options);
});

after(async () => {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
});

test("a trace of 100 000 events opens whole and is below two megabytes", async () => {
  assert.ok(facts.events >= 100_000);
  const size = statSync(join(folder, "page.html")).size;
  assert.ok(size < 2_000_000, `${size} bytes`);
  await open("page.html");
  const times = await page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
    drawn: performance.getEntriesByName("drawn")[0]?.startTime,
  }));
  console.log(`# ${size} bytes, first paint ${times.paint} ms, lanes drawn ${times.drawn} ms`);
  assert.ok(times.paint > 0 && times.drawn > 0);
  within(times.paint, 2000);
  within(times.drawn, 2000);
  const [from, to] = await read("bounds");
  assert.ok(from <= 0 && to >= facts.makespan && to < facts.makespan * 1.01);
  assert.equal(number(await text("#shown")), facts.spans);
  await page.screenshot({ path: join(folder, "light.png") });
});

test("the lanes are drawn", async () => {
  const colors = await page.evaluate(() => {
    const canvas = document.getElementById("lanes");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const color = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      seen.set(color, (seen.get(color) ?? 0) + 1);
    }
    return [...seen.values()].sort((a, b) => b - a);
  });
  const total = colors.reduce((sum, count) => sum + count, 0);
  assert.ok(colors.length > 20, `${colors.length} colors`);
  assert.ok(colors[0] < total * 0.95, "one color nearly everywhere");
  const drawn = await read("drawn");
  assert.equal(drawn.gaps, facts.gaps);
  assert.ok(drawn.bars > 500);
});

test("the wheel zooms and keeps the time under the pointer in place", async () => {
  const { x, y, box } = await middle();
  const at = x + 150;
  await page.mouse.move(at, y);
  const time = async () => {
    const [from, to] = await read("range");
    return from + ((at - box.x) / box.width) * (to - from);
  };
  const [before, length] = [await time(), await visible()];
  for (let i = 0; i < 10; i++) await page.mouse.wheel(0, -100);
  await settled();
  about(await visible(), length * Math.exp(-1.8), 0.02, "visible");
  about(await time(), before, 0.001, "time under the pointer");
  for (let i = 0; i < 40; i++) await page.mouse.wheel(0, 100);
  await settled();
  assert.ok((await visible()) >= facts.makespan, "zooming out ends at the whole run");
});

test("keys zoom, pan and reset as the help says", async () => {
  await press("0");
  const whole = await visible();
  await page.mouse.move(5, 5);
  for (const [into, out] of [
    ["w", "s"],
    ["+", "-"],
  ]) {
    await press(into);
    about(await visible(), whole / 1.6, 0.01);
    await press(into);
    about(await visible(), whole / 2.56, 0.01);
    await press(out);
    await press(out);
    about(await visible(), whole, 0.01);
  }
  for (let i = 0; i < 8; i++) await press("w");
  for (const [left, right] of [
    ["a", "d"],
    ["ArrowLeft", "ArrowRight"],
  ]) {
    const [start, length] = [(await read("range"))[0], await visible()];
    await press(right);
    about((await read("range"))[0] - start, length * 0.2, 0.01);
    await press(left);
    await press(left);
    about((await read("range"))[0] - start, -length * 0.2, 0.01);
    await press(right);
  }
  await press("0");
  assert.deepEqual(await read("range"), await read("bounds"));
});

test("dragging moves the view by the pointer's distance", async () => {
  for (let i = 0; i < 6; i++) await press("w");
  const { x, y, box } = await middle();
  const [start, length] = [(await read("range"))[0], await visible()];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x - 100, y, { steps: 4 });
  await page.mouse.up();
  await settled();
  about((await read("range"))[0] - start, (100 / box.width) * length, 0.01);
  about(await visible(), length, 1e-6);
  assert.equal(await read("pin"), null, "a drag is not a click");
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 50_000, y, { steps: 3 });
  await page.mouse.up();
  assert.ok((await read("range"))[0] >= -0.03 * facts.makespan, "stays at the recording");
});

test("busy and idle time of a selected range add up to its length", async () => {
  await press("0");
  const { y, box } = await middle();
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 200, y);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, y, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const { from, to } = await read("selection");
  about(to - from, (200 / box.width) * (await visible()), 0.01);
  const rows = await page.locator("#selected tbody tr").allInnerTexts();
  assert.equal(rows.length, 5);
  const time = (/** @type {string} */ text) => {
    const [, value, unit] = /([\d.]+)\s(ns|µs|ms|s)/.exec(text) ?? [];
    return Number(value) * { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 }[unit];
  };
  for (const row of rows) {
    const [, busy, , idle] = row.split("\t");
    about(time(busy) + time(idle), to - from, 0.01, row);
  }
  const busy = await page.evaluate(
    ([from, to]) => [0, 1, 2, 3, 4].map((lane) => window.lapwing.busy(0, lane, from, to)),
    facts.range,
  );
  assert.deepEqual(busy, facts.busyInRange);
  const causes = rows.map((row) => row.split("\t")[4]);
  assert.ok(
    causes.some((cause) => /^dependency on (cpu|gpu|npu)/.test(cause)),
    causes.join("; "),
  );
  assert.ok(!causes.some((cause) => cause.startsWith("dependency,")), causes.join("; "));
  // A thousandth of the range needs four digits more than its length.
  const caption = await text("#selected caption");
  const moment = /from ([\d.\u202f]+)/.exec(caption)?.[1].replace(/[^\d]/g, "") ?? "";
  assert.ok(moment.length > 0 && moment.length <= 7, caption);
  await press("f");
  about(await visible(), (to - from) * 1.1, 0.01);
  await press("Escape");
  assert.equal(await read("selection"), null);
  await press("0");
});

test("search finds exactly the matching spans", async () => {
  for (const [query, count] of [
    ["attention", facts.attention],
    ["ATTENT", facts.attention],
    ["chunk 7", facts.chunk7],
    ["request:3", facts.request3],
    ["layer 5", facts.layer5],
    ["request 3 layer 5", facts.request3layer5],
    ["gpu", facts.gpu],
    ["no such op", 0],
  ]) {
    await searchFor(query);
    assert.equal(await read("matches"), count, query);
    assert.equal(number(await text("#match-count")), count, query);
    await page.keyboard.press("Escape");
  }
  await settled();
  assert.equal((await read("drawn")).matches, 0);
});

test("going to a match brings it into view", async () => {
  await searchFor("attention");
  assert.equal((await read("drawn")).matches > 0, true);
  await press("Enter");
  assert.equal(await read("match"), 0);
  assert.ok((await visible()) < facts.makespan / 10, "a match is shown at a visible size");
  await press("n");
  await press("n");
  assert.equal(await read("match"), 2);
  assert.match(await text("#match-count"), /^3 of/);
  await press("N");
  assert.equal(await read("match"), 1);
  await press("Escape");
  await press("0");
});

test("filters keep exactly the matching spans", async () => {
  const shown = async () => number(await text("#shown"));
  await page.selectOption("#filter-lane", "gpu");
  assert.equal(await shown(), facts.gpu);
  await settled();
  assert.equal(await page.locator(".lane").count(), 1);
  await page.click("#clear");
  assert.equal(await shown(), facts.spans);
  await page.fill("#filter-request", "3");
  assert.equal(await shown(), facts.request3);
  await page.fill("#filter-layer", "5");
  assert.equal(await shown(), facts.request3layer5);
  await page.fill("#filter-request", "");
  assert.equal(await shown(), facts.layer5);
  await page.fill("#filter-layer", "");
  await page.fill("#filter-chunk", "7");
  assert.equal(await shown(), facts.chunk7);
  await page.fill("#filter-chunk", "7-x");
  assert.equal(await page.locator("#filter-chunk:invalid").count(), 1);
  await page.click("#clear");
  await page.selectOption("#filter-lane", "cpu");
  await page.selectOption("#filter-activity", "sample");
  assert.equal(await shown(), facts.sampleOnCpu);
  await settled();
  const drawn = await read("drawn");
  assert.ok(drawn.spans > 0 && drawn.spans <= facts.sampleOnCpu);
  await page.click("#clear");
  await page.locator("#scroll").focus();
  await press("e");
  assert.equal((await read("drawn")).spans, facts.spans, "with all nested spans");
  await press("e");
  await press("e");
});

test("the tooltip of a span shows what was recorded", async () => {
  await searchFor("attention");
  await press("Enter");
  await press("f");
  const { box } = await middle();
  // The match fills most of the view; its row is found by trial.
  let card = "";
  for (let y = box.y + 8; y < box.y + box.height && !card.includes("attention"); y += 12) {
    await page.mouse.move(box.x + box.width / 2, y);
    await settled();
    card = (await page.locator("#card").isVisible()) ? await text("#card") : "";
  }
  const first = facts.firstAttention;
  assert.match(card, /attention/);
  assert.match(card, new RegExp(`Lane\\n+${first.lane}, slot 0`));
  assert.match(card, new RegExp(`Chunk\\n+${first.chunk}\\n`));
  about(Number(/Duration\n+([\d.]+)\sµs/.exec(card)?.[1]) * 1000, first.duration, 0.01);
  const start = Number(/Start\n+([\d.\u202f]+)/.exec(card)?.[1].replace("\u202f", ""));
  assert.equal(Math.round(start * 1e6), first.start);
  about(Number(/([\d.]+) GB\/s/.exec(card)?.[1]), first.bytes / first.duration, 0.01);
  for (const word of ["Slack", "Critical path", "GFLOP/s", "Layer", "Request", "Rows", "Epoch"]) {
    assert.ok(card.includes(word), word);
  }
  await page.screenshot({ path: join(folder, "card.png") });
  await press("Escape");
});

test("late gaps of a request and the reason for the rows of a chunk are shown", async () => {
  await press("Escape");
  await page.click("#tab-requests");
  const button = page.locator("button.jump", { hasText: /^3$/ });
  const cells = await page.locator("#requests tr", { has: button }).locator("td").allInnerTexts();
  about(Number.parseFloat(cells[5]) * 1000, facts.worstGap3, 0.01, cells[5]);
  assert.match(cells[5], /, target 300\sµs$/);
  assert.equal(Number(cells[6]), facts.lateGaps3);
  const [chunk, stream] = facts.dueChunk;
  for (const [limited, why] of [
    [facts.shortChunk, /Rows\n+\d+, kept short for streams\n/],
    [chunk, new RegExp(`Rows\\n+\\d+, because stream ${stream} was due in 48.0\\sµs\\n`)],
  ]) {
    await searchFor(`layers stage chunk:${limited}`);
    await press("Enter");
    await press("Enter");
    assert.match(await text("#selected-body"), why);
    await press("Escape");
    await press("Escape");
  }
  await press("0");
});

test("the messages of a pinned span lead to the spans at their other ends", async () => {
  await searchFor("layers stage");
  await press("Enter");
  await press("f");
  const { box } = await middle();
  let pinned = null;
  for (let y = box.y + 8; y < box.y + box.height && !pinned; y += 12) {
    await page.mouse.click(box.x + box.width / 2, y);
    await settled();
    pinned = (await text("#selected-body")).startsWith("layers stage") && (await read("pin"));
  }
  assert.ok(pinned);
  assert.match(await text("#selected-body"), /Incoming messages: 1/);
  assert.match(await text("#selected-body"), /Outgoing messages: 1/);
  await page.locator("#selected table button.jump").last().click();
  await settled();
  const next = await read("pin");
  assert.notEqual(next.index, pinned.index);
  assert.match(await text("#selected-body"), /^head stage/);
  await press("0");
  assert.equal((await read("drawn")).messages, 2, "zoomed out, only those of the pinned span");
  await press("Escape");
  await press("Escape");
  assert.equal(await read("pin"), null);
});

test("critical path, idle causes and messages can be hidden and shown", async () => {
  await press("0");
  await page.mouse.move(5, 5);
  for (let i = 0; i < 12; i++) await press("w");
  for (const [key, layer, what] of [
    ["c", "critical", "segments"],
    ["g", "gaps", "gaps"],
    ["m", "messages", "messages"],
  ]) {
    const count = (await read("drawn"))[what];
    assert.ok(count > 0, what);
    await press(key);
    assert.equal((await read("drawn"))[what], 0, what);
    assert.equal(await page.getAttribute(`#show-${layer}`, "aria-pressed"), "false");
    await page.click(`#show-${layer}`);
    await settled();
    assert.equal((await read("drawn"))[what], count, what);
  }
});

test("the tooltip of a gap shows its cause", async () => {
  await press("0");
  const { y, box } = await middle();
  await page.mouse.move(box.x + 1, y);
  for (let i = 0; i < 26; i++) await page.mouse.wheel(0, -100);
  await settled();
  let found = "";
  for (let gap = 0; gap < 200 && !found; gap++) {
    const place = await page.evaluate((gap) => window.lapwing.gapPlace(0, gap), gap);
    if (place.x < box.x + 4 || place.x > box.x + box.width - 4) continue;
    await page.mouse.move(place.x, place.y);
    await settled();
    const hover = await read("hover");
    if (hover?.what === "gap" && hover.index === gap) found = await text("#card");
  }
  assert.match(found, /scheduler, idle/);
  assert.match(found, /Next\n+\S/);
  assert.match(found, /dependency|hand-off|back-pressure|restart|mailbox|spin|overshoot/);
});

test("tables can be opened and sorted", async () => {
  for (const [tab, word] of [
    ["critical", "Breakdown of the makespan"],
    ["ops", "qkv matmul"],
    ["waits", "Calibration"],
    ["messages", "progress"],
    ["requests", "Time to first token (TTFT)"],
    ["summary", "Overlap achievable"],
  ]) {
    await page.click(`#tab-${tab}`);
    assert.ok((await text(`#${tab}`)).includes(word), tab);
    assert.equal(await page.locator("#panel > section:visible").count(), 1);
  }
  await page.click("#tab-requests");
  await page.locator("#requests button.jump", { hasText: /^3$/ }).click();
  assert.equal(number(await text("#shown")), facts.request3);
  await page.click("#clear");
  await page.click("#tab-ops");
  const counts = async () =>
    (await page.locator("#ops tbody td:nth-child(3)").allInnerTexts()).map(number);
  await page.click("#ops th:nth-child(3) button");
  const falling = await counts();
  assert.deepEqual(
    falling,
    [...falling].sort((a, b) => b - a),
  );
  await page.click("#ops th:nth-child(3) button");
  assert.deepEqual(await counts(), [...falling].reverse());
  await page.locator("#ops button.jump", { hasText: "rope" }).first().click();
  assert.ok((await read("matches")) > 0);
  await page.locator("#scroll").focus();
  await press("Escape");
});

test("a pinch, a double click and the overview move the view", async () => {
  await press("0");
  const whole = await visible();
  const { x, y, box } = await middle();
  await page.mouse.move(x, y);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -50);
  await page.keyboard.up("Control");
  await settled();
  about(await visible(), whole * Math.exp(-0.5), 0.02, "pinch");
  for (let i = 0; i < 30; i++) await page.mouse.wheel(0, -100);
  await settled();
  const [length, start] = [await visible(), (await read("range"))[0]];
  await page.mouse.click(box.x + 30, box.y - 50);
  await settled();
  about(await visible(), length, 1e-6);
  const shift = (await read("range"))[0] - start;
  assert.ok(shift < -0.3 * whole, `the overview moved the view by ${shift}`);
  await searchFor("layers stage");
  await press("Enter");
  await press("Enter");
  const pin = await read("pin");
  assert.ok(pin, "Enter pins the match");
  const place = await page.evaluate((i) => window.lapwing.place(0, i), pin.index);
  await page.mouse.dblclick(place.x, place.y);
  await settled();
  assert.ok((await visible()) < length, "a double click fits the span");
  assert.match(await text("#selected-body"), new RegExp(`^layers stage`));
  const pinned = await text("#selected-body .facts");
  const [, value] = /Duration\n+([\d.]+)\sµs/.exec(pinned) ?? [];
  about(await visible(), Number(value) * 1000 * 1.1, 0.02, "fitted");
  await press("]");
  assert.notEqual((await read("pin")).index, pin.index);
  await press("[");
  assert.equal((await read("pin")).index, pin.index);
  await press("Escape");
  await press("Escape");
});

test("nested spans can be folded", async () => {
  await press("0");
  await press("e");
  const all = (await read("drawn")).spans;
  assert.equal(all, facts.spans);
  await page.locator(".fold").nth(1).click();
  await settled();
  const folded = (await read("drawn")).spans;
  assert.ok(folded < all && folded >= all - facts.gpu, `${folded} of ${all}`);
  await page.locator(".fold").nth(1).click();
  await settled();
  assert.equal((await read("drawn")).spans, all);
  await page.locator("#scroll").focus();
  await press("e");
  await press("e");
});

test("the address reopens the same view", async () => {
  await open("page.html");
  assert.equal(await page.evaluate(() => location.hash), "", "nothing is remarkable yet");
  await page.selectOption("#coloring", "layer");
  await page.selectOption("#filter-lane", "gpu");
  await page.fill("#filter-request", "3-5");
  await page.locator("#scroll").focus();
  for (let i = 0; i < 6; i++) await press("w");
  await searchFor("attention");
  await press("Enter");
  await press("Enter");
  await press("g");
  await press("e");
  await page.click("#tab-ops");
  await page.locator("#splitter").focus();
  await press("ArrowLeft");
  await page.click("#theme");
  await page.waitForTimeout(300);
  const view = () =>
    page.evaluate(() => ({
      ...{ range: window.lapwing.range.map(Math.round), pin: window.lapwing.pin },
      ...{ layers: window.lapwing.layers, shown: window.lapwing.shown },
      matches: window.lapwing.matches,
      fields: ["query", "coloring", "filter-lane", "filter-request"].map(
        (id) => document.getElementById(id).value,
      ),
      tab: document.querySelector("[aria-selected=true]").id,
      panel: document.getElementById("panel").offsetWidth,
      theme: document.documentElement.dataset.theme,
      legend: document.querySelector("#legend b").textContent,
    }));
  const before = await view();
  assert.ok(before.pin && before.matches > 0 && before.tab === "tab-ops");
  const link = page.url();
  assert.ok(link.includes("#"), link);
  await open(`page.html${new URL(link).hash}`);
  assert.deepEqual(await view(), before);
  await page.waitForTimeout(300);
  assert.equal(page.url(), link, "opening a link does not change it");
  // A link into the page that is open, and one that makes no sense.
  await page.evaluate(() => (location.hash = "t=1000000..2000000&color=op"));
  await settled();
  assert.deepEqual((await read("range")).map(Math.round), [1e6, 2e6]);
  assert.equal(await page.inputValue("#coloring"), "op");
  assert.equal(await page.inputValue("#filter-lane"), "");
  await page.evaluate(
    () => (location.hash = "t=9..1&pin=7.7&color=x&y=-1&panel=9&tab=none&hide=x"),
  );
  await settled();
  assert.deepEqual(await read("range"), await read("bounds"));
  assert.equal(await read("pin"), null);
  await open("page.html");
});

test("colours stand for activities, ops, layers, requests or drafts", async () => {
  const legend = () => page.locator("#legend > div").first().locator(".entry").allInnerTexts();
  await press("0");
  for (let i = 0; i < 12; i++) await press("w");
  const pixels = () =>
    page.evaluate(() => {
      const canvas = document.getElementById("lanes");
      return canvas.toDataURL();
    });
  const seen = new Set([await pixels()]);
  for (const [coloring, entries] of /** @type {[string, RegExp[]][]} */ ([
    ["op", [/^qkv matmul$/, /^attention$/, /^other ops$/]],
    ["layer", [/^layer 0$/, /^layer 5$/, /^no single layer$/]],
    ["request", [/^requests? \d+/, /^no single request$/]],
    ["draft", [/^draft$/, /^verify, all accepted$/, /^cancelled$/, /^no draft$/]],
    ["activity", [/^compute$/, /^sample$/]],
  ])) {
    await page.selectOption("#coloring", coloring);
    await settled();
    const found = await legend();
    for (const entry of entries) {
      assert.ok(
        found.some((text) => entry.test(text)),
        `${entry} in ${found}`,
      );
    }
    assert.ok((await read("contrast")) >= 4.5, coloring);
    seen.add(await pixels());
  }
  assert.equal(seen.size, 5, "each choice is drawn differently, and the first one as before");
  await press("0");
});

test("devices come first, and time begins with the first event", async () => {
  const names = await page.locator(".lane .name").allInnerTexts();
  assert.deepEqual(names, ["cpu", "gpu", "npu", "scheduler", "client"]);
  assert.match(await text("#summary table tbody"), /^cpu/);
  assert.equal((await read("bounds"))[0], 0);
  await page.waitForFunction(() => document.getElementById("range").textContent !== "");
  assert.match(await text("#range"), /^[\d.]{2,4}\sms in view from 0\sns$/);
});

test("one sentence says where the time went", async () => {
  const answer = await text("#answer");
  assert.match(answer, /^Where the [\d.]+\sms went: [\d.]+\s% work on (cpu|gpu|npu)/);
  const shares = [...answer.replace(/\(.*?\)/g, "").matchAll(/([\d.]+)\s%/g)];
  const sum = shares.reduce((sum, [, share]) => sum + Number(share), 0);
  assert.ok(Math.abs(sum - 100) < 0.5, answer);
});

test("tables are not cut off in a wide window", async () => {
  await page.setViewportSize({ width: 1600, height: 900 });
  await page.click("#tab-ops");
  await settled();
  const sides = () =>
    page.evaluate(() => {
      const scrolled = document.querySelector("#ops .scrolled");
      const cell = scrolled.querySelector("tbody td");
      const last = scrolled.querySelector("tbody td:last-child");
      const [box, first, end] = [scrolled, cell, last].map((e) => e.getBoundingClientRect());
      return { room: box.right - end.right, left: first.left - box.left };
    });
  await page.evaluate(() => (document.querySelector("#ops .scrolled").scrollLeft = 1e6));
  assert.ok(Math.abs((await sides()).left) <= 1, "the first column stays");
  assert.ok((await sides()).room >= -1, "the last column can be reached");
  const splitter = await page.locator("#splitter").boundingBox();
  assert.ok(splitter);
  const y = splitter.y + splitter.height / 2;
  await page.mouse.move(splitter.x + 4, y);
  await page.mouse.down();
  await page.mouse.move(500, y, { steps: 4 });
  await page.mouse.up();
  await page.evaluate(() => (document.querySelector("#ops .scrolled").scrollLeft = 0));
  assert.ok((await sides()).room >= -1, "a wide panel shows all columns");
  const wide = (await page.locator("#panel").boundingBox())?.width ?? 0;
  about(wide, 1100, 0.02);
  await page.mouse.dblclick(504, y);
  assert.ok(((await page.locator("#panel").boundingBox())?.width ?? 0) < 900, "as at first");
  await page.screenshot({ path: join(folder, "tables.png") });
  await page.click("#tab-summary");
  await page.setViewportSize({ width: 1440, height: 900 });
  await settled();
});

test("the rates of ops are in view, and names and captions of lanes are whole", async () => {
  await page.click("#tab-ops");
  await settled();
  const room = await page.evaluate(() => {
    const scrolled = document.querySelector("#ops .scrolled");
    scrolled.scrollLeft = 0;
    const heads = [...scrolled.querySelectorAll("th")];
    const rate = heads.find((head) => head.textContent.includes("GFLOP/s"));
    return scrolled.getBoundingClientRect().right - rate.getBoundingClientRect().right;
  });
  assert.ok(room >= 0, `${room} pixels`);
  const cut = await page.evaluate(() =>
    [...document.querySelectorAll(".lane .name, .lane small")]
      .filter((text) => text.scrollWidth > text.clientWidth)
      .map((text) => text.textContent),
  );
  assert.deepEqual(cut, []);
  await page.click("#tab-summary");
  await settled();
});

test("an animated move ends where a jump does", async () => {
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await page.mouse.move(5, 5);
  await press("0");
  const whole = await visible();
  await press("w");
  about(await visible(), whole / 1.6, 0.01);
  await page.keyboard.press("w");
  await page.keyboard.press("w");
  await settled();
  about(await visible(), whole / 1.6 ** 3, 0.01, "keys pressed during the move count");
  await page.emulateMedia({ reducedMotion: "reduce" });
  await press("0");
});

/** Smallest contrast of any text with its background. */
const leastContrast = () =>
  page.evaluate(() => {
    const parse = (/** @type {string} */ color) => (color.match(/[\d.]+/g) ?? []).map(Number);
    const luminance = (/** @type {number[]} */ rgb) =>
      rgb.slice(0, 3).reduce((sum, value, i) => {
        const part = value / 255;
        const linear = part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        return sum + linear * [0.2126, 0.7152, 0.0722][i];
      }, 0);
    let least = { contrast: Infinity, what: "" };
    for (const element of document.querySelectorAll("body *")) {
      const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent?.trim());
      if (!own || !element.checkVisibility() || element.closest(":disabled, svg")) continue;
      let behind = element;
      while (parse(getComputedStyle(behind).backgroundColor)[3] === 0 && behind.parentElement) {
        behind = behind.parentElement;
      }
      const ink = luminance(parse(getComputedStyle(element).color));
      const paper = luminance(parse(getComputedStyle(behind).backgroundColor));
      const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      if (contrast < least.contrast) least = { contrast, what: element.outerHTML.slice(0, 120) };
    }
    return least;
  });

test("text has enough contrast in both themes", async () => {
  for (const colorScheme of /** @type {("light" | "dark")[]} */ (["light", "dark"])) {
    await page.emulateMedia({ colorScheme });
    for (const tab of ["selected", "summary", "ops"]) {
      await page.click(`#tab-${tab}`);
      const { contrast, what } = await leastContrast();
      assert.ok(contrast >= 4.5, `${contrast} in ${colorScheme}: ${what}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
});

test("help opens and the theme changes", async () => {
  await press("?");
  assert.ok(await page.locator("#keys").isVisible());
  await press("Escape");
  assert.ok(!(await page.locator("#keys").isVisible()));
  assert.ok((await read("contrast")) >= 4.5);
  await page.click("#theme");
  await settled();
  const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(paper, "rgb(17, 20, 24)");
  assert.ok((await read("contrast")) >= 4.5);
  await page.screenshot({ path: join(folder, "dark-near.png") });
  await page.click("#theme");
  await settled();
  await page.screenshot({ path: join(folder, "light-near.png") });
});

test("every control has an accessible name", async () => {
  const nameless = await page.evaluate(
    () =>
      [...document.querySelectorAll("button, input, select")].filter(
        (control) =>
          !(control.textContent?.trim() || control.getAttribute("aria-label")) &&
          !control.closest("label"),
      ).length,
  );
  assert.equal(nameless, 0);
});

test("a frame of the whole run has less than a tenth as many shapes as the run has spans", async () => {
  await press("0");
  const { boxes, bars, waits } = await read("drawn");
  console.log(`# ${boxes + bars + waits} shapes of ${facts.spans} spans`);
  assert.ok(bars > 0 && 10 * (boxes + bars + waits) < facts.spans);
  const { x, y } = await middle();
  await page.mouse.move(x, y);
  const times = [];
  for (let i = 0; i < 60; i++) {
    await page.mouse.wheel(0, i < 30 ? -60 : 60);
    await page.waitForTimeout(16);
    times.push(await read("drawTime"));
  }
  times.sort((a, b) => a - b);
  console.log(`# drawing: median ${times[30].toFixed(1)} ms, worst ${times[59].toFixed(1)} ms`);
  within(times[30], 33);
});

test("the dark theme applies to page and lanes", async () => {
  await open("page.html", { colorScheme: "dark" });
  const pixel = await page.evaluate(() => {
    const canvas = document.getElementById("lanes");
    return [...canvas.getContext("2d").getImageData(20, canvas.height - 4, 1, 1).data];
  });
  assert.ok(pixel[0] < 40 && pixel[2] < 50, String(pixel));
  assert.ok((await read("contrast")) >= 4.5);
  await page.screenshot({ path: join(folder, "dark.png") });
});

test("the page fits small windows", async () => {
  for (const [width, height] of [
    [1000, 700],
    [720, 450],
  ]) {
    await page.setViewportSize({ width, height });
    await settled();
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${width}: ${over} pixels too wide`);
    const box = await page.locator("#lanes").boundingBox();
    assert.ok(box && box.width > 300 && box.height > 100, JSON.stringify(box));
    await page.screenshot({ path: join(folder, `small-${width}.png`) });
  }
});

test("two runs are shown and compared", async () => {
  await open("two.html");
  assert.equal(await page.locator(".lane").count(), 10);
  assert.equal(await page.locator(".run-title").count(), 2);
  const compare = await text("#compare");
  assert.match(compare, /The makespan is .* in A and .* in B/);
  assert.match(compare, /Overlap achieved/);
  assert.ok((await page.locator("#compare tbody tr").count()) > 20);
  await page.screenshot({ path: join(folder, "two.png") });
  await searchFor("chunk 7");
  assert.ok((await read("matches")) > facts.chunk7 / 2);
  await press("Enter");
  await press("n");
  await page.screenshot({ path: join(folder, "two-near.png") });
});

test("the page of a run without events works", async () => {
  await open("empty.html");
  assert.equal(number(await text("#shown")), 0);
  assert.equal(await page.locator(".lane").count(), 5);
  for (const key of ["w", "d", "0", "f", "n", "c", "g", "m", "e"]) await press(key);
  await searchFor("x");
  const { x, y } = await middle();
  await page.mouse.move(x, y);
  await page.mouse.wheel(0, -200);
  await settled();
  assert.ok((await visible()) > 0);
});

test("names from a recording do not run as code, and dropped events are reported", async () => {
  await open("hostile.html");
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.match(await text("#warnings"), /12\u202f345 events were dropped/);
  assert.ok((await text(".lane .name")).startsWith("\"'><b onclick=pwned=1>"));
  await page.click("#tab-ops");
  assert.ok((await text("#ops")).includes("</script><script>window.pwned=1</script>"));
  assert.equal(await page.locator("img").count(), 0);
  const { x, y } = await middle();
  await page.mouse.click(x, y);
  await settled();
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await page.screenshot({ path: join(folder, "hostile.png") });
});

test("many runs are shown side by side and can be opened", async () => {
  await bare("many.html");
  const shown = () => page.locator(".entry:visible").count();
  assert.equal(await page.locator(".entry").count(), 15);
  assert.equal(await shown(), 5, "one length at a time");
  const scale = await page.locator(".group:visible .picture text:last-of-type").allInnerTexts();
  assert.equal(new Set(scale).size, 1, `pictures of a length have one scale: ${scale}`);
  await page.screenshot({ path: join(folder, "many.png"), fullPage: true });
  await page.click("#choice button:nth-child(2)");
  assert.equal(await shown(), 5);
  assert.match(await text(".group:not([hidden])"), /200 tokens|cpu-only/);
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.getAttribute("#choice button:nth-child(3)", "aria-checked"), "true");
  const times = async () =>
    (await page.locator(".group:visible tbody td:nth-child(2)").allInnerTexts()).map(parseFloat);
  await page.click(".group:not([hidden]) th:nth-child(2) button");
  const sorted = await times();
  assert.deepEqual(
    sorted,
    [...sorted].sort((a, b) => b - a),
  );
  assert.ok((await text(".group:not([hidden]) tbody tr:last-child")).includes("fastest"));
  await page.click(".group:not([hidden]) tbody tr:last-child button");
  const inner = page.frameLocator("iframe#frame");
  await inner.locator(".lane").first().waitFor();
  assert.equal(await inner.locator(".lane").count(), 5);
  assert.equal(await text("#opened"), "auto · 300 tokens");
  assert.ok(await page.isDisabled("#after"), "it is the last run of its group");
  await inner.locator("#coloring").selectOption("layer");
  await page.waitForFunction(() => location.hash === "#run-14&color=layer");
  const link = new URL(page.url()).hash;
  await page.screenshot({ path: join(folder, "many-open.png") });
  await page.click("#before");
  await page.waitForFunction(() =>
    document.getElementById("opened")?.textContent?.includes("graph"),
  );
  await inner.locator("h1", { hasText: "chunk-graph · 300 tokens" }).waitFor();
  await page.click("#back");
  await page.locator(".entry:visible").first().waitFor();
  assert.equal(await shown(), 5);
  await page.evaluate(() => history.back());
  await page.locator("#viewer").waitFor();
  assert.equal(await text("#opened"), "chunk-graph · 300 tokens");
  await bare(`many.html${link}`);
  const again = page.frameLocator("iframe#frame");
  await again.locator("#legend b", { hasText: "Layer" }).waitFor();
  assert.equal(await text("#opened"), "auto · 300 tokens");
  await bare("many.html");
  await page.emulateMedia({ colorScheme: "dark" });
  const { contrast, what } = await leastContrast();
  assert.ok(contrast >= 4.5, `${contrast}: ${what}`);
  await page.setViewportSize({ width: 640, height: 800 });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `${over} pixels too wide`);
});

test("names on an overview do not run as code", async () => {
  await bare("many-hostile.html");
  await page.locator(".entry h3 button").first().click();
  const inner = page.frameLocator("iframe#frame");
  await inner.locator(".lane").first().waitFor();
  assert.equal(await inner.locator("img").count(), 0);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await inner.locator("body").evaluate(() => window.pwned), undefined);
  assert.match(await inner.locator("#warnings").innerText(), /events were dropped/);
});

test("without scripts the summary is readable", async () => {
  await page.close();
  const plain = await chromium.launch(options);
  page = await plain.newPage({ javaScriptEnabled: false });
  await page.goto(address("page.html"));
  const body = await text("body");
  for (const word of ["Overlap achieved", "Idle time of the lanes", "qkv matmul", "TTFT"]) {
    assert.ok(body.includes(word), word);
  }
  assert.ok((await page.locator("svg.picture path").count()) > 4);
  assert.equal(await page.locator(".script-only:visible").count(), 0);
  await page.screenshot({ path: join(folder, "no-scripts.png") });
  await page.goto(address("many.html"));
  assert.equal(await page.locator(".entry:visible svg").count(), 15);
  assert.ok((await text("body")).includes("300 tokens"));
  await plain.close();
});

test("no page used the network or logged an error", () => {
  assert.deepEqual(faults, []);
  assert.deepEqual(
    requests.filter((url) => !url.startsWith("file://") && !url.startsWith("data:")),
    [],
  );
  const files = requests.filter((url) => url.startsWith("file://"));
  assert.equal(new Set(files.map((url) => url.replace(/#.*/, ""))).size, 6);
});
