/** Helpers for every page: elements, sortable tables, compressed data. */

/**
 * Creates an element with text or children.
 * @param {string} tag
 * @param {string} className
 * @param {(Node | string)[]} children
 */
function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Turns the heads of a table into buttons that sort it. @param {Element} table */
function makeSortable(table) {
  const wrap = element("div", "scrolled");
  table.replaceWith(wrap);
  wrap.append(table);
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = element("button", "");
    button.append(...head.childNodes);
    head.replaceChildren(button);
    button.addEventListener("click", () => sortTable(table, head, column));
  });
}

/**
 * @param {Element} table
 * @param {Element} head
 * @param {number} column
 */
function sortTable(table, head, column) {
  const body = table.querySelector("tbody");
  if (!body) return;
  const numeric = head.classList.contains("n");
  const before = head.getAttribute("aria-sort");
  const falling = before ? before === "ascending" : numeric;
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  /** @param {Element} row */
  const key = (row) => {
    const cell = /** @type {HTMLElement} */ (row.children[column]);
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    return numeric ? -Infinity : (cell.textContent ?? "");
  };
  const rows = [...body.children].map((row) => ({ row, key: key(row) }));
  rows.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0) * (falling ? -1 : 1));
  body.append(...rows.map(({ row }) => row));
}

/**
 * @param {string} text base64 of deflated bytes
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
