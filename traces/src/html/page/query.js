/** Selects the spans that match a search or a filter. */

/**
 * @typedef {object} Filter
 * @property {string} lane name; empty for all
 * @property {string} activity name; empty for all
 * @property {NumberSet | null} request
 * @property {NumberSet | null} layer
 * @property {NumberSet | null} chunk
 */

/** @typedef {[bigint, bigint][]} NumberSet ranges, both ends included */

/**
 * Parses a list such as `3, 5-8`.
 * @param {string} text
 * @returns {NumberSet | null | undefined} null if empty, undefined if invalid
 */
function parseNumbers(text) {
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  if (parts.length === 0) return null;
  /** @type {NumberSet} */
  const set = [];
  for (const part of parts) {
    const found = /^(\d{1,20})(?:[-–](\d{1,20}))?$/.exec(part);
    if (!found) return undefined;
    set.push([BigInt(found[1]), BigInt(found[2] ?? found[1])]);
  }
  return set;
}

/**
 * @param {NumberSet} set
 * @param {string} number
 */
function hasNumber(set, number) {
  const value = BigInt(number);
  return set.some(([low, high]) => low <= value && value <= high);
}

/**
 * Which entries of a dictionary are in the set; the last entry stands for "none".
 * @param {NumberSet} set
 * @param {string[]} dictionary
 */
function placesOf(set, dictionary) {
  const places = new Uint8Array(dictionary.length + 1);
  dictionary.forEach((number, i) => (places[i] = hasNumber(set, number) ? 1 : 0));
  return places;
}

/**
 * The spans that pass the filter; null for all.
 * @param {Run} run
 * @param {Filter} filter
 */
function passing(run, filter) {
  const { lane, activity, request, layer, chunk } = filter;
  if (!lane && !activity && !request && !layer && !chunk) return null;
  const { spans, head } = run;
  const keep = new Uint8Array(spans.count).fill(1);
  /** @param {(i: number) => boolean | number} test */
  const need = (test) => {
    for (let i = 0; i < keep.length; i++) if (!test(i)) keep[i] = 0;
  };
  if (lane) {
    const lanes = head.lanes.map(({ name }) => name === lane);
    need((i) => lanes[spans.lane[i]]);
  }
  if (activity) {
    const number = head.activities.indexOf(activity);
    need((i) => spans.activity[i] === number);
  }
  if (request) {
    const places = placesOf(request, head.requests);
    need((i) => places[spans.request[i] < 0 ? head.requests.length : spans.request[i]]);
  }
  if (chunk) {
    const places = placesOf(chunk, head.chunks);
    need((i) => places[spans.chunk[i] < 0 ? head.chunks.length : spans.chunk[i]]);
  }
  if (layer) {
    const numbers = Array.from({ length: 65536 }, (_, i) => String(i));
    const places = placesOf(layer, numbers);
    need((i) => spans.layer[i] > 0 && places[spans.layer[i] - 1]);
  }
  return keep;
}

/**
 * The spans that match a search. `chunk 7`, `request:3`, `layer=2` and `stage 1` match by number;
 * the rest of the text matches names of ops and lanes. All conditions must be met.
 * @param {Run} run
 * @param {string} query
 * @param {Uint8Array | null} keep the spans searched
 * @returns {Uint8Array | null} null without a query
 */
function searching(run, query, keep) {
  const { spans, head } = run;
  /** @type {((i: number) => boolean)[]} */
  const tests = [];
  const rest = query
    .toLowerCase()
    .replace(/\b(chunk|request|layer|stage)\s*[:=#]?\s*(\d{1,20})\b/g, (_, key, number) => {
      if (key === "chunk") {
        const place = head.chunks.indexOf(number);
        tests.push((i) => place >= 0 && spans.chunk[i] === place);
      } else if (key === "request") {
        const place = head.requests.indexOf(number);
        tests.push((i) => place >= 0 && spans.request[i] === place);
      } else {
        const column = key === "layer" ? spans.layer : spans.stage;
        tests.push((i) => column[i] === Number(number) + 1);
      }
      return " ";
    })
    .trim();
  if (rest) {
    const names = head.names.map((name) => name.toLowerCase().includes(rest));
    const lanes = head.lanes.map(({ name }) => name.toLowerCase().includes(rest));
    tests.push((i) => names[spans.name[i]] || lanes[spans.lane[i]]);
  }
  if (tests.length === 0) return null;
  const found = new Uint8Array(spans.count);
  for (let i = 0; i < found.length; i++) {
    found[i] = (!keep || keep[i]) && tests.every((test) => test(i)) ? 1 : 0;
  }
  return found;
}
