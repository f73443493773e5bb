/** Decodes the compressed runs of the page into typed arrays. */

/**
 * @typedef {object} Head header of a run, before its columns
 * @property {string} title
 * @property {Record<string, string>} meta
 * @property {string} start time of the run's start in ns, on the clock of the recording
 * @property {number} makespan
 * @property {number} dropped
 * @property {number} orphans
 * @property {{ name: string, kind: string }[]} lanes
 * @property {string[]} names
 * @property {string[]} chunks
 * @property {string[]} requests
 * @property {string[]} streams for which chunks were limited
 * @property {{ name: string, lane: number }[]} counters
 * @property {string[]} activities
 * @property {string[]} roles of passes in speculative decoding; codes count from 1
 * @property {string[]} causes
 * @property {string[]} modes
 * @property {string[]} stalls
 * @property {string[]} milestones
 * @property {{ name: string, count: number, delta: boolean }[]} columns
 */

/** Columns whose values may exceed 31 bits. */
const WIDE =
  /^request\.target$|\.(start|duration|queued|submitted|rows|drafted|accepted|wasted|epoch|bytes|flops|slack|sent|delay|stalled|predicted|margin|slept|spun|at|value)$/;

/**
 * @param {string} text base64
 * @returns {Promise<{ head: Head, columns: Record<string, Float64Array | Int32Array> }>}
 */
async function decode(text) {
  const bytes = await inflate(text);
  const length = new DataView(bytes.buffer).getUint32(0, true);
  /** @type {Head} */
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  /** @type {Record<string, Float64Array | Int32Array>} */
  const columns = Object.create(null);
  let at = 4 + length;
  for (const { name, count, delta } of head.columns) {
    const values = WIDE.test(name) ? new Float64Array(count) : new Int32Array(count);
    at = delta ? readDeltas(bytes, at, values) : readPlain(bytes, at, values);
    columns[name] = values;
  }
  return { head, columns };
}

/**
 * @param {Uint8Array} bytes
 * @param {number} at
 * @param {Float64Array | Int32Array} values
 */
function readPlain(bytes, at, values) {
  for (let i = 0; i < values.length; i++) {
    let byte = bytes[at++];
    let value = byte & 0x7f;
    // Bit operations are limited to 32 bits; numbers have up to 53.
    for (let unit = 128; byte >= 0x80; unit *= 128) {
      byte = bytes[at++];
      value += (byte & 0x7f) * unit;
    }
    values[i] = value;
  }
  return at;
}

/**
 * @param {Uint8Array} bytes
 * @param {number} at
 * @param {Float64Array | Int32Array} values
 */
function readDeltas(bytes, at, values) {
  const zigzag = new Float64Array(values.length);
  at = readPlain(bytes, at, zigzag);
  let value = 0;
  for (let i = 0; i < values.length; i++) {
    const coded = zigzag[i];
    value += coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2;
    values[i] = value;
  }
  return at;
}
