// The page of the server at $LAPWING_URL in headless Chromium: chats, the state of the server, and what an answer must not do.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const url = process.env.LAPWING_URL;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
const page = await context.newPage();
const problems = [];
page.on("pageerror", error => problems.push(error.message));
page.on("console", message => message.type() === "error" && problems.push(message.text()));
page.on("request", request => { if (!request.url().startsWith(url)) problems.push(`asks for ${request.url()}`); });
const screenshot = async name => { if (process.env.SCREENSHOT) await page.screenshot({ path: `${process.env.SCREENSHOT}-${name}.png` }); };
const answers = () => page.locator(".turn.assistant").count();
const idle = () => page.waitForFunction(() => document.querySelector("#send").textContent === "Send");
const sent = [];
page.on("request", request => { if (request.url().endsWith("/v1/chat/completions")) sent.push(request.postDataJSON()); });
await page.goto(url);
await page.waitForFunction(() => document.querySelector("#model").length === 1);

// An answer: the most likely tokens, so that it is the same each time, and a short one.
await page.fill("#temperature", "0");
await page.fill("#longest", "40");
await page.click("#system-row summary");
await page.fill("#system", "Answer in one sentence.");
await page.fill("#text", "Name a <b>colour</b>.");
await page.keyboard.press("Enter");
await page.waitForSelector(".note >> text=tokens/s", { timeout: 120_000 });
assert.equal(await page.textContent(".message.user"), "Name a <b>colour</b>.", "text is shown, not run");
const first = await page.textContent(".message.assistant");
assert.ok(first.length > 2);
assert.deepEqual(sent[0].messages[0], { role: "system", content: "Answer in one sentence." });
await page.waitForFunction(() => /vtc/.test(document.querySelector("#state").textContent));
assert.match(await page.textContent(".note >> text=tokens/s"), /, [1-9]\d? generated/, "as long as asked for");
const busy = await page.waitForSelector(".lane:has-text('cpu') path[d]:not([d=''])");
assert.match(await busy.evaluate(path => path.closest(".lane").lastChild.textContent), /^\d+ %$/);
await screenshot("light");

// Copied, and asked for again: the same answer, in place of the first.
await page.click(".turn.assistant button:has-text('Copy')");
await page.waitForSelector("text=Copied");
assert.ok((await page.evaluate(() => navigator.clipboard.readText())).length > 2);
await page.click("text=Regenerate");
await idle();
assert.equal(await answers(), 1);
assert.equal(await page.textContent(".message.assistant"), first);
assert.deepEqual(sent[1].messages, sent[0].messages);

// A long prompt shows how much of it is read, and Escape stops the answer.
await page.fill("#longest", "1500");
await page.fill("#text", `${"The lapwing calls at night over the wet meadow. ".repeat(110)} Write a very long story about it.`);
await page.keyboard.press("Enter");
await page.waitForSelector("text=/reading the prompt, \\d.* of \\d/");
await page.waitForSelector(".turn:nth-child(4) .message.assistant", { timeout: 120_000 });
await page.keyboard.press("Escape");
await page.waitForSelector("text=/^stopped$/");
await idle();

// So does the button. The conversation survives a reload.
await page.click("text=Regenerate");
await page.waitForFunction(() => document.querySelector("#send").textContent === "Stop");
await page.click("#send");
await page.waitForSelector("text=/^stopped$/");
await idle();
const turns = await page.locator(".turn").count();
await page.reload();
assert.equal(await page.locator(".turn").count(), turns);
assert.equal(await page.textContent(".message.assistant >> nth=0"), first);
assert.equal(await page.inputValue("#system"), "Answer in one sentence.");
await page.click("#clear");
assert.equal(await page.locator(".turn").count(), 0);

// What is in an answer runs nothing, loads nothing, and leads to web pages only.
const hostile = [
  "# A title\n\nText with **bold**, `code` and <b>no tags</b> <img src=x onerror=alert(1)> <script>alert(1)</script>",
  "[page](https://example.org/a) [run](javascript:alert(1)) ![picture](https://example.org/p.png) https://example.org/b.",
  "- one\n  - two\n\n1. three\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n> quoted",
  '```html\n<img src="https://example.org/q.png" onerror="alert(1)">\n```',
].join("\n\n");
const stream = (...events) => events.map(event => `data: ${JSON.stringify(event)}\n\n`).join("") + "data: [DONE]\n\n";
const answer = (...deltas) => stream(...deltas.map(delta => ({ choices: [{ index: 0, delta, finish_reason: null }] })));
const reply = { contentType: "text/event-stream", body: answer({ reasoning_content: "I *think*." }, { content: hostile }) };
await page.route("**/v1/chat/completions", route => route.fulfill(reply), { times: 1 });
await page.fill("#text", "Something hostile");
await page.keyboard.press("Enter");
await page.waitForSelector(".code");
await idle();
const shown = await page.locator(".message.assistant").evaluate(message => ({
  tags: [...new Set([...message.querySelectorAll("*")].map(element => element.tagName.toLowerCase()))].sort(),
  links: [...message.querySelectorAll("a")].map(link => [link.getAttribute("href"), link.target, link.rel]),
  text: message.textContent,
}));
const known = "a blockquote br button code div figcaption figure h3 li ol p pre span strong table tbody td th thead tr ul";
assert.deepEqual(shown.tags.filter(tag => !known.split(" ").includes(tag)), []);
for (const tag of ["h3", "strong", "ul", "ol", "table", "blockquote", "pre"]) assert.ok(shown.tags.includes(tag), tag);
const rel = ["_blank", "noopener noreferrer nofollow"];
assert.deepEqual(shown.links, ["a", "p.png", "b"].map(path => [`https://example.org/${path}`, ...rel]));
assert.match(shown.text, /<script>alert\(1\)<\/script>/);
await page.click(".code button");
await page.waitForSelector("text=Copied");
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), '<img src="https://example.org/q.png" onerror="alert(1)">');
assert.equal(await page.locator(".thoughts").evaluate(thoughts => thoughts.open), false);
assert.equal(await page.locator(".thoughts .message").textContent(), "I think.");

// An error is shown, and the question can be asked again.
await page.route("**/v1/chat/completions", route => route.fulfill({ contentType: "text/event-stream", body: stream({ error: { message: "it is broken" } }) }), { times: 1 });
await page.fill("#longest", "8");
await page.fill("#text", "Name a bird.");
await page.keyboard.press("Enter");
await page.waitForSelector(".error >> text=it is broken");
assert.equal(await answers(), 1);
await page.click("text=Try again");
await page.waitForSelector(".turn:nth-child(4) .note >> text=tokens/s", { timeout: 120_000 });
assert.equal(await page.locator(".error").count(), 0);

// In a dark and narrow window everything is reached without scrolling sideways.
const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = await paper();
await page.emulateMedia({ colorScheme: "dark" });
assert.notEqual(await paper(), light);
await screenshot("dark");
await page.setViewportSize({ width: 375, height: 740 });
await page.reload();
await page.waitForSelector(".turn");
assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 375);
await screenshot("narrow");
await page.click("#toggle-panel");
await page.waitForSelector("#state table");
assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 375);

await page.goto(await page.getAttribute("#timeline", "href").then(href => new URL(href, url).href));
await page.waitForSelector("canvas, svg");
assert.deepEqual(problems, []);
await browser.close();
console.log("the page: ok");
