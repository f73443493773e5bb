/** Colours of both themes, after Okabe and Ito. Hatches repeat what the colours say. */

/** @typedef {[number, number, number]} Rgb */

/** @type {Record<string, Rgb>} */
const HUES = {
  compute: [0, 114, 178],
  copy: [230, 159, 0],
  convert: [86, 180, 233],
  prepare: [204, 121, 167],
  schedule: [0, 158, 115],
  sample: [240, 228, 66],
  sync: [213, 94, 0],
  other: [92, 104, 122],
  read: [166, 86, 40],
};

/** Activities that have a hatch besides their colour. @type {Record<string, string>} */
const WORK_HATCH = { copy: "/", convert: "\\", prepare: "x", sync: ".", read: "/" };

/** Colour and hatch of idle causes. @type {Record<string, [Rgb, string]>} */
const CAUSES = {
  dependency: [[110, 122, 138], "/"],
  "cancelled work": [HUES.sync, "x"],
  "graph build": [HUES.prepare, "x"],
  conversion: [HUES.convert, "\\"],
  reading: [HUES.read, "/"],
  "back-pressure": [HUES.copy, "|"],
  "slot pool empty": [HUES.copy, "x"],
  "policy barrier": [HUES.prepare, "|"],
  "hand-off": [HUES.schedule, "\\"],
  "sleep overshoot": [HUES.sync, "/"],
  spin: [HUES.sync, "."],
  restart: [HUES.compute, "-"],
  "mailbox empty": [[138, 143, 152], "."],
  start: [[138, 143, 152], ""],
  end: [[138, 143, 152], ""],
  unattributed: [[200, 0, 90], "x"],
};

/** @typedef {ReturnType<typeof makePalette>} Palette */

/**
 * @param {Rgb} a
 * @param {Rgb} b
 * @param {number} share of a
 * @returns {Rgb}
 */
function mix(a, b, share) {
  return [0, 1, 2]
    .map((i) => Math.round(a[i] * share + b[i] * (1 - share)))
    .reduce((rgb, value, i) => {
      rgb[i] = value;
      return rgb;
    }, /** @type {Rgb} */ ([0, 0, 0]));
}

/**
 * @param {Rgb} rgb
 * @param {number} [alpha]
 */
function css([r, g, b], alpha = 1) {
  return alpha === 1 ? `rgb(${r} ${g} ${b})` : `rgb(${r} ${g} ${b} / ${alpha})`;
}

/** Relative luminance, as WCAG defines it. @param {Rgb} rgb */
function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/**
 * @param {Rgb} a
 * @param {Rgb} b
 */
function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} hatch
 * @param {string} color
 * @param {number} ratio device pixels per pixel
 */
function hatching(context, hatch, color, ratio) {
  if (!hatch) return null;
  const size = 6;
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(size * ratio);
  const draw = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  draw.scale(tile.width / size, tile.height / size);
  draw.strokeStyle = draw.fillStyle = color;
  draw.lineWidth = 1;
  draw.beginPath();
  // Each line is drawn three times, so that adjacent tiles join.
  for (const shift of [-size, 0, size]) {
    if ("/x".includes(hatch)) {
      draw.moveTo(shift - 1, size + 1);
      draw.lineTo(shift + size + 1, -1);
    }
    if ("\\x".includes(hatch)) {
      draw.moveTo(shift - 1, -1);
      draw.lineTo(shift + size + 1, size + 1);
    }
  }
  if (hatch === "|") {
    draw.moveTo(2.5, 0);
    draw.lineTo(2.5, size);
  }
  if (hatch === "-") {
    draw.moveTo(0, 2.5);
    draw.lineTo(size, 2.5);
  }
  draw.stroke();
  if (hatch === ".") {
    draw.fillRect(1, 1, 1.2, 1.2);
    draw.fillRect(4, 4, 1.2, 1.2);
  }
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

/** Text colours for bright and for dark spans. @type {[Rgb, Rgb]} */
const INKS = [
  [14, 18, 23],
  [250, 251, 252],
];

/**
 * Fills of a class of spans, each with the most legible text colour. Ops of the same activity get
 * slightly different shades, so that neighbours remain distinguishable.
 * @param {SpanClass} of
 * @param {Rgb} paper
 * @param {number} share of the hue
 */
function shadesAt({ hue, shades }, paper, share) {
  const fill = mix(hue, paper, share);
  return [0, 0.1, 0.2].slice(0, shades).map((pale) => {
    const shade = mix(paper, fill, pale);
    const text = contrast(shade, INKS[0]) > contrast(shade, INKS[1]) ? INKS[0] : INKS[1];
    return { fill: css(shade), text: css(text), contrast: contrast(shade, text) };
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {boolean} dark
 * @param {number} ratio device pixels per pixel
 * @param {Head} head
 */
function makePalette(context, dark, ratio, head) {
  /** @type {Rgb} */
  const paper = dark ? [17, 20, 24] : [255, 255, 255];
  /** @type {Rgb} */
  const ink = dark ? [236, 239, 243] : [22, 27, 34];
  const work = state.spanClasses.map((of) => {
    const bright = luminance(of.hue) > 0.5;
    let shades = shadesAt(of, paper, dark ? 0.85 : bright ? 0.85 : 0.55);
    for (
      let share = 0.8;
      dark && share > 0.3 && shades.some((s) => s.contrast < 5);
      share -= 0.05
    ) {
      shades = shadesAt(of, paper, share);
    }
    const hatch = hatching(context, of.hatch, css(ink, 0.16), ratio);
    return { name: of.name, shades, hatch };
  });
  const causes = head.causes.map((name) => {
    const [hue, hatch] = CAUSES[name] ?? CAUSES.unattributed;
    const line = mix(hue, ink, dark ? 0.85 : 0.9);
    return {
      name,
      fill: css(mix(hue, paper, dark ? 0.16 : 0.12)),
      solid: css(mix(hue, paper, dark ? 0.45 : 0.35)),
      hatch: hatching(context, hatch, css(line, hatch === "/" ? 0.4 : 0.6), ratio),
    };
  });
  return {
    dark,
    paper: css(paper),
    ink: css(ink),
    muted: css(mix(ink, paper, dark ? 0.68 : 0.66)),
    faint: css(mix(ink, paper, 0.3)),
    line: css(mix(ink, paper, dark ? 0.17 : 0.12)),
    grid: css(mix(ink, paper, dark ? 0.09 : 0.06)),
    band: css(mix(ink, paper, dark ? 0.045 : 0.025)),
    accent: dark ? "rgb(108 182 255)" : "rgb(9 92 173)",
    veil: dark ? "rgb(108 182 255 / 0.12)" : "rgb(9 92 173 / 0.09)",
    halo: css(paper, 0.85),
    critical: dark ? "rgb(255 255 255)" : "rgb(0 0 0)",
    late: dark ? "rgb(255 138 76)" : "rgb(190 70 0)",
    sleep: dark ? "rgb(92 84 140)" : "rgb(178 170 214)",
    spun: css(mix(HUES.sync, paper, dark ? 0.6 : 0.55)),
    counter: dark ? "rgb(108 182 255 / 0.22)" : "rgb(9 92 173 / 0.14)",
    busy: css(mix(HUES.compute, paper, dark ? 0.7 : 0.55)),
    work,
    causes,
  };
}
