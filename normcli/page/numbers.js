// Numbers as texts.

const UNREADABLE = { nan: NaN, inf: Infinity, "-inf": -Infinity };
const read = (value) => (typeof value === "string" ? UNREADABLE[value] : value);
const readAll = (list) => list.map(read);

/** A number as JSON has it: the shortest text that reads back to the same bits. */
function formatExactly(value) {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return Object.is(value, -0) ? "-0.0" : String(value);
}

const nameUnreadable = (value) => (Number.isNaN(value) ? "nan" : value > 0 ? "∞" : "−∞");

const raise = (exponent) => String(Number(exponent)).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));

/** 1.5e-7 as 1.5·10⁻⁷, and a minus that is one. */
function typeset(text) {
  const [digits, exponent] = text.split("e");
  const power = exponent === undefined ? "" : `${digits === "1" ? "" : "·"}10${raise(exponent)}`;
  return `${power && digits === "1" ? "" : digits}${power}`.replace("-", "−");
}

/** A number with so many significant digits and no zeros behind it, as JavaScript writes it. */
function round(value, digits) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 10 ** Math.max(digits, 8)) return String(value);
  if (size >= 1e-5 && size < 10 ** Math.max(digits, 6)) return String(Number(value.toPrecision(digits)));
  return value.toExponential(digits - 1).replace(/\.?0+e/, "e");
}

/** The same as a reader has it. */
const format = (value, digits = data.digits) =>
  Number.isFinite(value) ? typeset(round(value, digits)) : nameUnreadable(value);

/** How many decimals a number has; of more than so many, so many. */
function countDecimals(value, most) {
  for (let decimals = 0; decimals < most; decimals++) if (Number(value.toFixed(decimals)) === value) return decimals;
  return most;
}

/** A formatter under which a tensor's values align: so many decimals for all, and no more than they need. */
function makeCellFormat(values) {
  const finite = values.filter(Number.isFinite);
  const largest = finite.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const digits = data.cellDigits;
  const exponent = largest ? Math.floor(Math.log10(largest)) : 0;
  const isWhole = largest < 10 ** digits && finite.every(Number.isInteger);
  const room = isWhole ? 0 : Math.min(100, Math.max(0, digits - 1 - exponent));
  const decimals = finite.reduce((most, value) => (most < room ? Math.max(most, countDecimals(value, room)) : most), 0);
  const isLong = !isWhole && (exponent <= -5 || exponent > digits);
  return (value) => {
    if (!Number.isFinite(value)) return nameUnreadable(value);
    const text = isLong ? value.toExponential(digits - 1) : value.toFixed(decimals);
    return typeset(/[1-9]/.test(text.split("e")[0]) ? text : text.replace("-", ""));
  };
}
