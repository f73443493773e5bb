// The page of the server at $LAPWING_URL in headless Chromium: a chat, the state of the server, a key that is missing.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const url = process.env.LAPWING_URL;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
const problems = [];
page.on("pageerror", error => problems.push(error.message));
page.on("console", message => message.type() === "error" && problems.push(message.text()));
page.on("request", request => { if (!request.url().startsWith(url)) problems.push(`asks for ${request.url()}`); });
await page.goto(url);
await page.waitForFunction(() => document.querySelector("#model").length === 1);
// The most likely tokens, so that the answer is the same each time, and a short one.
await page.fill("#temperature", "0");
await page.fill("#longest", "40");
await page.fill("#text", "Name a <b>colour</b>.");
await page.keyboard.press("Enter");
await page.waitForSelector(".note >> text=tokens/s", { timeout: 60_000 });
assert.equal(await page.textContent(".message.user"), "Name a <b>colour</b>.", "text is shown, not run");
assert.ok((await page.textContent(".message.assistant")).length > 2);
await page.waitForFunction(() => /vtc/.test(document.querySelector("#state").textContent));
assert.match(await page.textContent(".note >> text=tokens/s"), /, [1-9]\d? generated/, "as long as asked for");
const busy = await page.waitForSelector(".lane:has-text('cpu') path[d]:not([d=''])");
assert.match(await busy.evaluate(path => path.closest(".lane").lastChild.textContent), /^\d+ %$/);
if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT });
// Stop cancels the answer.
await page.fill("#longest", "1500");
await page.fill("#text", "Write a very long story about a boat, as long as you can.");
await page.click("#send");
await page.waitForFunction(() => document.querySelector("#send").textContent === "Stop");
await page.click("#send");
await page.waitForSelector("text=/^stopped$/");
await page.waitForFunction(() => document.querySelector("#send").textContent === "Send");
await page.goto(await page.getAttribute("#timeline", "href").then(href => new URL(href, url).href));
await page.waitForSelector("canvas, svg");
assert.deepEqual(problems, []);
await browser.close();
console.log("the page: ok");
