// Formatting of numbers and placement of ticks.

const withMinus = (text) => text.replace("-", "\u2212");

function format(value, figures = 4) {
  return withMinus(String(Number(value.toPrecision(figures))));
}

// A value rounded to two significant digits of its standard deviation, such as 1.02 ± 0.56.
function formatWithStd(value, std) {
  if (!(std > 0)) return format(value, 5);
  const places = Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(std))));
  if (Math.abs(value) >= 1e7 || std < 1e-9) return `${format(value, 7)} \u00b1 ${format(std, 2)}`;
  return withMinus(`${value.toFixed(places)} \u00b1 ${std.toFixed(places)}`);
}

function linearTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const positions = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) positions.push(i * step);
  return { positions, places: Math.max(0, Math.ceil(-Math.log10(step) - 1e-9) + (step / power === 2.5 ? 1 : 0)) };
}

// Ticks at round multiples of a unit that is `scale` times as large as that of the positions.
function scaledTicks(low, high, count, scale) {
  const { positions, places } = linearTicks(low / scale, high / scale, count);
  return { positions: positions.map((at) => at * scale), text: (at) => withMinus(formatFixed(at / scale, places)) };
}

function logTicks(low, high) {
  const positions = [];
  const multiples = high < 8 * low ? [1, 1.5, 2, 3, 5, 7] : [1, 2, 5];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
    for (const m of multiples) if (m * 10 ** p >= low && m * 10 ** p <= high) positions.push(m * 10 ** p);
  }
  return positions;
}

const wrapLongitude = (longitude) => ((((longitude + 180) % 360) + 360) % 360) - 180;
const withUnit = (output) => (output.heading_unit ? `${output.name} (${output.heading_unit})` : output.name);

function formatFixed(value, places) {
  return places > 6 ? String(Number(value.toPrecision(6))) : (Math.abs(value) < 1e-12 ? 0 : value).toFixed(places);
}

// A coordinate with enough digits to distinguish neighbouring grid nodes.
const formatCoordinate = (value, step) => withMinus(formatFixed(value, Math.max(0, Math.ceil(0.7 - Math.log10(step)))));
