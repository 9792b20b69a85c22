"use strict";
// Arithmetic as it is printed. A term has the text, the value of that text (of the decimals in it, not of the
// doubles that they were rounded from) and whether it is exact: whether the text leaves nothing of them out.
//
// A value is a fraction [numerator, denominator]; null where it is none (a root) or not all of it is known; NaN
// where anything in it is not finite.
const arithmetic = (() => {
  const lift = (act) => (...values) => (values.some(Number.isNaN) ? NaN : values.includes(null) ? null : act(...values));

  const size = (n) => (n < 0n ? -n : n);

  function findCommon(a, b) {
    [a, b] = [size(a), size(b)];
    while (b) [a, b] = [b, a % b];
    return a;
  }

  function reduce([n, d]) {
    const common = findCommon(n, d);
    return [n / common, d / common];
  }

  /** The fraction that a decimal is, as JavaScript writes one. */
  function read(text) {
    const [digits, exponent = "0"] = text.split("e");
    const [whole, decimals = ""] = digits.split(".");
    const shift = Number(exponent) - decimals.length;
    const [n, power] = [BigInt(whole + decimals), 10n ** BigInt(Math.abs(shift))];
    return shift < 0 ? [n, power] : [n * power, 1n];
  }

  /** Decimals' denominators divide each other: a long sum of them does not grow. */
  const plus = lift(([a, b], [c, d]) => {
    if (d % b === 0n) return [a * (d / b) + c, d];
    return b % d === 0n ? [a + c * (b / d), b] : [a * d + c * b, b * d];
  });
  const less = lift((a, [c, d]) => plus(a, [-c, d]));
  const times = lift(([a, b], [c, d]) => [a * c, b * d]);
  const over = lift(([a, b], [c, d]) => (c === 0n ? NaN : c < 0n ? [-a * d, -b * c] : [a * d, b * c]));
  const isLess = ([a, b], [c, d]) => a * d < c * b;

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
    if (p < 0n) return n === 0n ? NaN : power(over([1n, 1n], base), [-p, q]);
    if (p > HIGHEST_DEGREE || q > HIGHEST_DEGREE || n < 0n && q > 1n) return null;
    const [top, bottom] = [takeWholeRoot(n ** p, q), takeWholeRoot(d ** p, q)];
    return top === null || bottom === null ? null : [top, bottom];
  });

  const combine = (text, value, ...terms) => ({ text, value, exact: terms.every((term) => term.exact) });
  const total = (terms) => terms.map((term) => term.value).reduce(plus);

  /** A number that is printed: its text, the decimal in it (null where it is not finite), and if that is all of it. */
  const number = (text, decimal, exact) => ({ text, value: decimal === null ? NaN : read(decimal), exact });

  const [one, two] = [[1n, 1n], [2n, 1n]];

  return {
    number,
    enclose: (term) => ({ ...term, text: `(${term.text})` }),
    add: (...terms) => combine(terms.map((term) => term.text).join(" + "), total(terms), ...terms),
    /** A long sum: the first terms and the last; or the first alone, where the others are not known. */
    elide(terms, isWhole) {
      const head = `${terms.slice(0, 3).map((term) => term.text).join(" + ")} + …`;
      return isWhole ? combine(`${head} + ${terms.at(-1).text}`, total(terms), ...terms) : combine(head, null, ...terms);
    },
    subtract: (a, b) => combine(`${a.text} − ${b.text}`, less(a.value, b.value), a, b),
    multiply: (a, b) => combine(`${a.text} · ${b.text}`, times(a.value, b.value), a, b),
    divide: (a, b) => combine(`${a.text} / ${b.text}`, over(a.value, b.value), a, b),
    square: (a) => combine(`${a.text}²`, power(a.value, two), a),
    raise: (a, b) => combine(`${a.text}^${b.text}`, power(a.value, b.value), a, b),
    root: (a) => combine(`√${a.text}`, power(a.value, over(one, two)), a),
    invert: (a) => combine(`(1/${a.text})`, over(one, a.value), a),
    absolute: (a) => combine(`|${a.text}|`, lift(([n, d]) => [size(n), d])(a.value), a),
    larger: (a, b) => combine(`max(${a.text}, ${b.text})`, lift((v, w) => (isLess(v, w) ? w : v))(a.value, b.value), a, b),

    /** The sign between two terms as they are printed; what is not finite follows rules that round nothing. */
    relate(left, right) {
      if (Number.isNaN(left.value)) return "=";
      const difference = less(left.value, right.value);
      return Array.isArray(difference) && difference[0] === 0n ? "=" : "≈";
    },
  };
})();
