// Numbers as people read them, and where the ticks of an axis go.

const minus = (text) => text.replace("-", "\u2212");

function plain(value, figures = 4) {
  return minus(String(Number(value.toPrecision(figures))));
}

// Two figures of the deviation, and the centre to the same place: 1.02 ± 0.56.
function give(centre, std) {
  if (!(std > 0)) return plain(centre, 5);
  const places = Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(std))));
  if (Math.abs(centre) >= 1e7 || std < 1e-9) return `${plain(centre, 7)} \u00b1 ${plain(std, 2)}`;
  return minus(`${centre.toFixed(places)} \u00b1 ${std.toFixed(places)}`);
}

function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return { found, places: Math.max(0, Math.ceil(-Math.log10(step) - 1e-9) + (step / power === 2.5 ? 1 : 0)) };
}

function logTicks(low, high) {
  const found = [];
  const several = high < 8 * low ? [1, 1.5, 2, 3, 5, 7] : [1, 2, 5];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
    for (const m of several) if (m * 10 ** p >= low && m * 10 ** p <= high) found.push(m * 10 ** p);
  }
  return found;
}

const around = (longitude) => ((((longitude + 180) % 360) + 360) % 360) - 180;
const withUnit = (input) => (input.unit ? `${input.name} (${input.unit})` : input.name);

function short(value, places) {
  return places > 6 ? String(Number(value.toPrecision(6))) : (Math.abs(value) < 1e-12 ? 0 : value).toFixed(places);
}

// A coordinate, to a fifth of the step of its grid or finer.
const position = (value, step) => minus(short(value, Math.max(0, Math.ceil(0.7 - Math.log10(step)))));
