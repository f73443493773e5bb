/**
 * Shows Markdown as elements. Text is never read as HTML, links lead to web pages and mail addresses only, and
 * no picture is loaded: its description is shown as a link.
 */

/** Quotes and lists within each other; deeper ones are shown as text. */
const DEPTH_MAX = 12;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^([ \t]*)([-*+]|(\d{1,9})[.)])(?:[ \t]+(.*))?$/;
const DASHES = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** An element with text or children. */
function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Shows `text` in place of what is in `place`. */
function showMarkdown(text, place) {
  place.replaceChildren(...blocks(text.replaceAll("\r\n", "\n").split("\n"), 0));
}

/** The elements of some lines. */
function blocks(lines, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const [block, next] = lines[at].trim() === "" ? [null, at + 1] : blockAt(lines, at, depth);
    if (block) made.push(block);
    at = next;
  }
  return made;
}

/** The block that begins at a line, and the first line after it. */
function blockAt(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return codeAt(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    const level = Math.min(heading[1].length + 2, 6);
    return [element("h" + level, "", ...inline(heading[2] ?? "")), at + 1];
  }
  if (RULE.test(line)) return [element("hr"), at + 1];
  if (isTable(lines, at)) return tableAt(lines, at);
  if (depth < DEPTH_MAX && QUOTE.test(line)) return quoteAt(lines, at, depth);
  if (depth < DEPTH_MAX && ITEM.test(line)) return listAt(lines, at, depth);
  let end = at + 1;
  while (end < lines.length && !interrupts(lines, end, depth)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim());
  return [element("p", "", ...inline(text.join("\n"))), end];
}

/** Whether the line ends the paragraph before it. A number other than 1 at its start may be part of a sentence. */
function interrupts(lines, at, depth) {
  const line = lines[at];
  if (line.trim() === "" || FENCE.test(line) || HEADING.test(line) || RULE.test(line)) return true;
  if (isTable(lines, at)) return true;
  const item = ITEM.exec(line);
  return (
    depth < DEPTH_MAX &&
    (QUOTE.test(line) || (item !== null && Number(item[3] ?? 1) === 1 && Boolean(item[4])))
  );
}

/** A block of code; one without an end is still being written. */
function codeAt(lines, at, [, fence, info]) {
  const indent = lines[at].length - lines[at].trimStart().length;
  const isEnd = (line) => {
    const end = line.trim();
    return end.length >= fence.length && end === fence[0].repeat(end.length);
  };
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end])) end += 1;
  const dropped = new RegExp(`^ {0,${indent}}`);
  const text = lines.slice(at + 1, end).map((line) => line.replace(dropped, ""));
  const code = text.join("\n");
  const copy = copyButton(() => code);
  const caption = element("figcaption", "", element("span", "", info.trim().split(/\s/)[0]), copy);
  const pre = element("pre", "", element("code", "", code));
  pre.tabIndex = 0;
  return [element("figure", "code", caption, pre), end + 1];
}

function quoteAt(lines, at, depth) {
  const inner = [];
  let found;
  while (at < lines.length && (found = QUOTE.exec(lines[at]))) {
    inner.push(found[1]);
    at += 1;
  }
  return [element("blockquote", "", ...blocks(inner, depth + 1)), at];
}

const indentOf = (line) => line.replaceAll("\t", "    ").search(/\S|$/);

/** A list: items with the indent and the kind of marker of the first. What is indented further belongs to an item. */
function listAt(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const isOrdered = first[3] !== undefined;
  const outer = indentOf(lines[at]);
  const list = element(isOrdered ? "ol" : "ul", "");
  if (isOrdered && Number(first[3]) !== 1) list.start = Number(first[3]);
  const isNext = (line) => {
    const item = ITEM.exec(line);
    return (
      item !== null &&
      !RULE.test(line) &&
      indentOf(line) <= outer + 1 &&
      (item[3] !== undefined) === isOrdered
    );
  };
  while (at < lines.length && isNext(lines[at])) {
    const item = ITEM.exec(lines[at]);
    const inner = [item[4] ?? ""];
    at += 1;
    while (at < lines.length) {
      const line = lines[at];
      const isBlank = line.trim() === "";
      const isInside = indentOf(line) >= outer + 2;
      const after = isBlank ? lines.slice(at + 1).find((line) => line.trim() !== "") : undefined;
      if (isBlank && (after === undefined || (indentOf(after) < outer + 2 && !isNext(after))))
        break;
      if (
        !isBlank &&
        !isInside &&
        (ITEM.test(line) || lines[at - 1].trim() === "" || interrupts(lines, at, depth))
      )
        break;
      inner.push(
        line.replaceAll("\t", "    ").slice(Math.min(indentOf(line), outer + item[2].length + 1)),
      );
      at += 1;
    }
    const parts = blocks(inner, depth + 1);
    // The text of an item is no paragraph of its own.
    if (parts[0]?.tagName === "P") parts.splice(0, 1, ...parts[0].childNodes);
    list.append(element("li", "", ...parts));
  }
  return [list, at];
}

/** The cells of a row; a bar in code or after a backslash does not divide. */
function cells(line) {
  const row = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  const parts = row.match(/(?:\\.|`[^`]*`|[^|])+|(?<=\||^)(?=\||$)/g) ?? [""];
  return parts.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function isTable(lines, at) {
  const next = lines[at + 1];
  if (!lines[at].includes("|") || next === undefined || !DASHES.test(next)) return false;
  return cells(lines[at]).length === cells(next).length;
}

function tableAt(lines, at) {
  const aligned = cells(lines[at + 1]).map(
    (dashes) => dashes.endsWith(":") && !dashes.startsWith(":"),
  );
  const row = (tag, line) => {
    const found = cells(line);
    return element(
      "tr",
      "",
      ...aligned.map((right, i) => element(tag, right ? "n" : "", ...inline(found[i] ?? ""))),
    );
  };
  const head = element("thead", "", row("th", lines[at]));
  const body = element("tbody");
  for (at += 2; at < lines.length && lines[at].includes("|"); at += 1)
    body.append(row("td", lines[at]));
  return [element("div", "scrolled", element("table", "", head, body)), at];
}

const CODE = /(`+)(?!`)([\s\S]*?[^`])\1(?!`)/y;
const LINK =
  /!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\([ \t]*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+(?:"[^"]*"|'[^']*'))?[ \t]*\)/y;
const ADDRESS = /<((?:https?:\/\/|mailto:)[^\s<>]+)>|(https?:\/\/[^\s<>]*[^\s<>.,;:!?'")\]*_~|])/y;
const MARKS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "del"],
  ["*", "em"],
  ["_", "em"],
];
const WORD = /[\p{L}\p{N}_]/u;

/** The nodes of text within a block. */
function inline(text, depth = 0) {
  const made = [];
  /** Marks that have no end in the rest of the text, so that it is searched once. */
  const open = new Set();
  let plain = "";
  const add = (node) => {
    if (plain) made.push(plain);
    plain = "";
    made.push(node);
  };
  const match = (pattern, at) => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };
  let at = 0;
  while (at < text.length) {
    const c = text[at];
    let found;
    if (c === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
    } else if (c === "\n") {
      add(element("br"));
      at += 1;
    } else if (c === "`" && (found = match(CODE, at))) {
      add(element("code", "", found[2].replace(/^ (.*\S.*) $/s, "$1")));
      at += found[0].length;
    } else if (
      (c === "[" || (c === "!" && text[at + 1] === "[")) &&
      depth < DEPTH_MAX &&
      (found = match(LINK, at))
    ) {
      add(link(found[2], c === "!" ? [found[1] || found[2]] : inline(found[1], depth + 1)));
      at += found[0].length;
    } else if (
      (c === "<" || (c === "h" && !WORD.test(text[at - 1] ?? ""))) &&
      (found = match(ADDRESS, at))
    ) {
      add(link(found[1] ?? found[2], [found[1] ?? found[2]]));
      at += found[0].length;
    } else if ("*_~".includes(c) && depth < DEPTH_MAX && (found = marked(text, at, open))) {
      add(element(found.tag, "", ...inline(text.slice(found.from, found.to), depth + 1)));
      at = found.end;
    } else {
      // A run of marks without an end is text as a whole.
      const run = "`*_~".includes(c) ? /^(.)\1*/s.exec(text.slice(at, at + 64))[0] : c;
      plain += run;
      at += run.length;
    }
  }
  if (plain) made.push(plain);
  return made;
}

/** The marked text that begins at `at`: its tag, its bounds, and where the text after it begins. */
function marked(text, at, open) {
  for (const [mark, tag] of MARKS) {
    const from = at + mark.length;
    if (!text.startsWith(mark, at) || open.has(mark) || /^\s|^$/.test(text.slice(from, from + 1)))
      continue;
    if (mark[0] === "_" && WORD.test(text[at - 1] ?? "")) continue;
    for (let to = text.indexOf(mark, from + 1); to >= 0; to = text.indexOf(mark, to + 1)) {
      const end = to + mark.length;
      const isPart = mark.length === 1 && (text[end] === mark || text[to - 1] === mark);
      const isInside = mark[0] === "_" && WORD.test(text[end] ?? "");
      if (!isPart && !isInside && !/\s|\\/.test(text[to - 1])) return { tag, from, to, end };
    }
    open.add(mark);
  }
  return null;
}

/** A link that opens a page of its own, which learns nothing of this one. Text if it leads elsewhere. */
function link(address, children) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(address)) return element("span", "", ...children);
  const made = element("a", "", ...children);
  made.href = address;
  made.target = "_blank";
  made.rel = "noopener noreferrer nofollow";
  return made;
}

/** A button that copies what `text` returns, and says so. */
function copyButton(text) {
  const button = element("button", "quiet", "Copy");
  button.type = "button";
  button.addEventListener("click", async () => {
    button.textContent = (await copy(text())) ? "Copied" : "Not copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}

/** Copies text; also where a page that was not sent over TLS has no clipboard. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const place = element("textarea", "", text);
    document.body.append(place);
    place.select();
    const done = document.execCommand("copy");
    place.remove();
    return done;
  }
}
