// Arithmetic as trees. A tree is a number, the name of one, or an operation with what it is done to:
// ["quotient", "x", "divisor"]. One function works it out in doubles, one writes it.
//
// What is written is a term: its text; how strongly the text holds together; whether it is exact, with no digit of
// a number left out; and its value, that of the decimals in the text and not of the doubles that they were rounded
// from. A value is a fraction [numerator, denominator]; null where it is none (a root) or not all of it is known;
// NaN where anything in it is not finite.

// -- fractions

const lift = (act) => (...values) => (values.some(Number.isNaN) ? NaN : values.includes(null) ? null : act(...values));

const size = (n) => (n < 0n ? -n : n);

function reduce([n, d]) {
  let [a, b] = [size(n), d];
  while (b) [a, b] = [b, a % b];
  return [n / a, d / a];
}

/** The fraction that a decimal is, as JavaScript writes one. */
function readDecimal(text) {
  const [digits, exponent = "0"] = text.split("e");
  const [whole, decimals = ""] = digits.split(".");
  const shift = Number(exponent) - decimals.length;
  const [n, power] = [BigInt(whole + decimals), 10n ** BigInt(Math.abs(shift))];
  return shift < 0 ? [n, power] : [n * power, 1n];
}

/** Decimals' denominators divide each other: a long sum of them does not grow. */
const add = lift(([a, b], [c, d]) => {
  if (d % b === 0n) return [a * (d / b) + c, d];
  return b % d === 0n ? [a + c * (b / d), b] : [a * d + c * b, b * d];
});
const subtract = lift((a, [c, d]) => add(a, [-c, d]));
const multiply = lift(([a, b], [c, d]) => [a * c, b * d]);
const divide = lift(([a, b], [c, d]) => (c === 0n ? NaN : c < 0n ? [-a * d, -b * c] : [a * d, b * c]));

/** The whole number that is a root of another, or null. */
function takeWholeRoot(n, degree) {
  if (n < 2n || degree === 1n) return n;
  let guess = 1n << BigInt(Math.ceil((4 * n.toString(16).length) / Number(degree)));
  for (;;) {
    const next = ((degree - 1n) * guess + n / guess ** (degree - 1n)) / degree;
    if (next >= guess) return guess ** degree === n ? guess : null;
    guess = next;
  }
}

/** Powers and roots of a higher degree are not worked out: their values would be hundreds of digits long. */
const HIGHEST_DEGREE = 16n;

const power = lift((base, exponent) => {
  const [p, q] = reduce(exponent);
  const [n, d] = q === 1n ? base : reduce(base);
  if (p < 0n) return n === 0n ? NaN : power(divide([1n, 1n], base), [-p, q]);
  if (p > HIGHEST_DEGREE || q > HIGHEST_DEGREE || (n < 0n && q > 1n)) return null;
  const [top, bottom] = [takeWholeRoot(n ** p, q), takeWholeRoot(d ** p, q)];
  return top === null || bottom === null ? null : [top, bottom];
});

// -- operations

const [OPEN, SUM, PRODUCT, POWER, ROOT, ATOM] = [0, 1, 2, 3, 4, 5];

/** Each in doubles, in fractions and in writing; how strongly what is written holds, and what it is done to must. */
const OPERATIONS = {
  sum: {
    double: (a, b) => a + b, fraction: add, join: (a, b) => `${a} + ${b}`, holds: SUM, needs: [OPEN, SUM],
  },
  difference: {
    double: (a, b) => a - b, fraction: subtract, join: (a, b) => `${a} − ${b}`, holds: SUM, needs: [OPEN, PRODUCT],
  },
  product: {
    double: (a, b) => a * b, fraction: multiply, join: (a, b) => `${a} · ${b}`, holds: PRODUCT, needs: [PRODUCT, POWER],
  },
  quotient: {
    double: (a, b) => a / b, fraction: divide, join: (a, b) => `${a} / ${b}`, holds: PRODUCT, needs: [PRODUCT, POWER],
  },
  power: {
    double: (a, b) => a ** b, fraction: power, join: (a, b) => (b === "2" ? `${a}²` : `${a}^${b}`), holds: POWER, needs: [ATOM, ATOM],
  },
  root: {
    double: Math.sqrt, fraction: (a) => power(a, [1n, 2n]), join: (a) => `√${a}`, holds: POWER, needs: [ROOT],
  },
  absolute: {
    double: Math.abs, fraction: lift(([n, d]) => [size(n), d]), join: (a) => `|${a}|`, holds: ATOM, needs: [OPEN],
  },
  maximum: {
    double: Math.max, fraction: lift((a, b) => (a[0] * b[1] < b[0] * a[1] ? b : a)),
    join: (a, b) => `max(${a}, ${b})`, holds: ATOM, needs: [OPEN, OPEN],
  },
};

// -- in doubles

/** The name of a group's own values, where its statistics are to be made of them. */
const MEMBERS = Symbol("members");

/** A sum to the last digit or so: what each addition rounds off is added up beside it (Neumaier 1974). */
function addUp(terms) {
  let [sum, rest] = [0, 0];
  for (const term of terms) {
    const next = sum + term;
    rest += Math.abs(sum) >= Math.abs(term) ? sum - next + term : term - next + sum;
    sum = next;
  }
  return Number.isFinite(sum + rest) ? sum + rest : sum;
}

/** The value that lies so far from the smallest to the largest, between its neighbours in proportion. */
function pickQuantile(share, terms) {
  if (!terms.length || terms.some(Number.isNaN)) return NaN;
  const sorted = Float64Array.from(terms).sort();
  const at = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low === high ? low : low + (high - low) * (at - Math.floor(at));
}

/** The largest singular value of a matrix, given in which row each term lies: by turning pairs of rows (Jacobi). */
function findSingularValue(numbers, terms) {
  const largest = Math.max(...terms.map(Math.abs));
  if (!(largest > 0 && Number.isFinite(largest))) return terms.some(Number.isNaN) ? NaN : largest;
  const rows = [];
  numbers.forEach((row, n) => (rows[row] ??= []).push(terms[n] / largest));
  const dot = (a, b) => addUp(a.map((value, n) => value * b[n]));
  for (let turned = true, sweep = 0; turned && sweep < 60; sweep += 1) {
    turned = false;
    for (let i = 0; i < rows.length; i += 1) {
      for (let j = i + 1; j < rows.length; j += 1) {
        const [a, b, c] = [dot(rows[i], rows[i]), dot(rows[j], rows[j]), dot(rows[i], rows[j])];
        if (Math.abs(c) <= 1e-16 * Math.sqrt(a * b)) continue;
        const half = (b - a) / (2 * c);
        const tangent = (half < 0 ? -1 : 1) / (Math.abs(half) + Math.hypot(1, half));
        const cosine = 1 / Math.hypot(1, tangent);
        const [first, second] = [rows[i], rows[j]];
        rows[i] = first.map((value, n) => cosine * (value - tangent * second[n]));
        rows[j] = first.map((value, n) => cosine * (tangent * value + second[n]));
        turned = true;
      }
    }
  }
  return largest * Math.sqrt(Math.max(...rows.map((row) => dot(row, row))));
}

/** uᵀXv after power iterations from u or v; of both, without any (see normcli/numerics/power.py). */
function iterateSingularValue(numbers, terms, count, u, v) {
  const rows = [];
  numbers.forEach((row, n) => (rows[row] ??= []).push(terms[n]));
  const multiply = (lines, vector) => lines.map((line) => addUp(line.map((value, n) => value * vector[n])));
  if (!count) return addUp(multiply(rows, v).map((value, n) => value * u[n]));
  const columns = rows[0].map((_, n) => rows.map((row) => row[n]));
  const turns = u ? [columns, rows] : [rows, columns];
  let [vector, length] = [u ?? v, 0];
  for (let step = 0; step < 2 * count; step += 1) {
    vector = multiply(turns[step % 2], vector);
    length = Math.hypot(...vector);
    if (!length) return 0;
    vector = vector.map((value) => value / length);
  }
  return length;
}

/** What a tree comes to, given the values of its names. */
function evaluate(tree, values) {
  if (!Array.isArray(tree)) return typeof tree === "number" ? tree : values[tree];
  const [operation, ...parts] = tree;
  const takeEach = (each) => values[MEMBERS].map((x) => evaluate(each, { ...values, x }));
  if (operation === "series" && parts[0] === null) return addUp(takeEach(parts[1]));
  if (operation === "quantile") return pickQuantile(parts[0], takeEach(parts[1]));
  if (operation === "singular") {
    const [numbers, each, ...iteration] = parts;
    const find = iteration.length ? iterateSingularValue : findSingularValue;
    return find(numbers, takeEach(each), ...iteration);
  }
  if (operation === "sign") return Math.sign(evaluate(parts[0], values));
  if (operation === "series" || operation === "worked") return evaluate(parts[0], values);
  if (operation === "root" && parts[0][0] === "sum") {
    // A square may lie beyond doubles where its root does not.
    const takeRoot = (part) => (part[0] === "power" ? evaluate(part[1], values) : Math.sqrt(evaluate(part, values)));
    return Math.hypot(...parts[0].slice(1).map(takeRoot));
  }
  return OPERATIONS[operation].double(...parts.map((part) => evaluate(part, values)));
}

// -- in writing

/** Longer sums are printed with their first terms and the last. */
const MOST_TERMS = 8;
const HEAD = 3;

/** Longer sums are not added up term by term: that would take too long for every cell that is pointed at. */
const MOST_ADDED = 1024;

/** A number as a term. */
function formatNumber(value) {
  const text = format(value);
  if (!Number.isFinite(value)) return { text, holds: value < 0 ? OPEN : ATOM, value: NaN, exact: true };
  const decimal = round(value, data.digits);
  const holds = value < 0 ? OPEN : decimal.includes("e") ? PRODUCT : ATOM;
  return { text, holds, value: readDecimal(decimal), exact: Number(decimal) === value };
}

const wrap = (term, least) => (term.holds < least ? `(${term.text})` : term.text);

/** A tree as a term; `formatLeaf` makes terms of numbers, names and sums over the group. */
function formatTree(tree, formatLeaf) {
  const leaf = formatLeaf(tree);
  if (leaf) return leaf;
  const { fraction, join, holds, needs } = OPERATIONS[tree[0]];
  const terms = tree.slice(1).map((part) => formatTree(part, formatLeaf));
  return {
    text: join(...terms.map((term, n) => wrap(term, needs[n]))),
    holds,
    value: fraction(...terms.map((term) => term.value)),
    exact: terms.every((term) => term.exact),
  };
}

/** A tree with names, some of which have labels. */
function formatNames(tree, labels) {
  const name = (text, holds) => ({ text, holds, value: NaN, exact: true });
  return formatTree(tree, (part) => {
    if (typeof part === "number") return formatNumber(part);
    if (typeof part === "string") return name(labels[part] ?? part, ATOM);
    if (part[0] === "series") return name(`Σ${wrap(formatNames(part[2], labels), POWER)}`, ROOT);
    return part[0] === "worked" ? name(part[2], ATOM) : null;
  });
}

/** A tree with numbers; its sums over the group are added up, or else written out. */
function formatNumbers(tree, scope, isAdded) {
  return formatTree(tree, (part) => {
    if (!Array.isArray(part) || part[0] === "worked") return formatNumber(evaluate(part, scope.values));
    if (part[0] !== "series") return null;
    return isAdded && part[1] !== null ? formatNumber(evaluate(part[1], scope.values)) : formatSeries(part[2], scope);
  });
}

/** A sum over the group: of a long one the first terms and the last; or the first alone, where others are unknown. */
function formatSeries(each, { values, members, isWhole }) {
  const isShort = isWhole && members.length <= MOST_TERMS;
  const isAdded = isWhole && members.length <= MOST_ADDED;
  const ends = isWhole ? [...members.slice(0, HEAD), members.at(-1)] : members.slice(0, HEAD);
  const terms = (isAdded ? members : ends).map((x) => formatNumbers(each, { values: { ...values, x } }, false));
  if (isShort && terms.length === 1) return terms[0];
  const texts = terms.map((term, n) => wrap(term, n ? SUM : OPEN));
  const shown = isShort ? texts : [...texts.slice(0, HEAD), "…", ...(isWhole ? texts.slice(-1) : [])];
  return {
    text: shown.join(" + "),
    holds: SUM,
    value: isAdded ? terms.map((term) => term.value).reduce(add, [0n, 1n]) : null,
    exact: terms.every((term) => term.exact),
  };
}

/** The sign between two terms; what is not finite follows rules that round nothing. */
function relate(left, right) {
  if (Number.isNaN(left.value)) return "=";
  const difference = subtract(left.value, right.value);
  return Array.isArray(difference) && difference[0] === 0n ? "=" : "≈";
}

// -- definitions

/**
 * Work definitions out in turn. Each gives its name in `values` a value: the one that is known of it, or else what
 * its formula comes to. Returned are the steps: the definitions that apply, with what they come to.
 */
function work(definitions, values, isMoved) {
  const steps = [];
  for (const definition of definitions) {
    const { name, formula, value, when } = definition;
    if (when === (isMoved ? "exact" : "moved") || (when === "zero" && values[name] !== 0)) continue;
    const result = evaluate(value ?? (values[name] === undefined ? formula : name), values);
    if (name) values[name] = result;
    steps.push({ definition, result });
  }
  return steps;
}

/** A step as it is printed: what is defined, by which names, and its links: each a sign and a text. */
function formatStep({ definition: { name, formula, words }, result }, scope) {
  const named = formula === undefined ? "" : formatNames(formula, scope.labels).text;
  const numbers = formula === undefined || words ? [] : [false, true].map((isAdded) => formatNumbers(formula, scope, isAdded));
  const isLost = (term) => Number.isNaN(term.value) && Number.isFinite(result); // beyond doubles on the way
  const terms = [...numbers.filter((term) => !isLost(term)), formatNumber(result)];
  const shown = terms.filter((term, n) => term.text !== terms[n + 1]?.text);
  // The first link is of what is called by name: equal to it if no digit is left out.
  const sign = (term, n) => (n ? relate(shown[n - 1], term) : term.exact ? "=" : "≈");
  return {
    name: name ?? named,
    means: [name ? named : "", words && say(words)].filter(Boolean).join(", "),
    links: shown.map((term, n) => [sign(term, n), term.text]),
  };
}
