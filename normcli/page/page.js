// Everything is read from the data: which statistics a group has, what is subtracted, what divides, where eps
// stands. At the eps that was given every number is normcli's own; at another, the page computes in doubles.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);

  // -- numbers

  const SPECIAL = { nan: NaN, inf: Infinity, "-inf": -Infinity };
  const read = (value) => (typeof value === "string" ? SPECIAL[value] : value);
  const readAll = (list) => list.map(read);

  /** A number as JSON has it: the shortest text that reads back to the same bits. */
  function spell(value) {
    if (Number.isNaN(value)) return "nan";
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    return Object.is(value, -0) ? "-0.0" : String(value);
  }

  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const lift = (exponent) =>
    String(exponent).replace(/[-+0-9]/g, (c) => (c === "-" ? "⁻" : c === "+" ? "" : SUPERSCRIPTS[c]));

  /** 1.5e-7 as 1.5·10⁻⁷, and a minus that is one. */
  function typeset(text) {
    const [digits, exponent] = text.split("e");
    const shown = exponent === undefined ? digits : `${digits === "1" ? "" : `${digits}·`}10${lift(Number(exponent))}`;
    return shown.replace("-", "−");
  }

  const notFinite = (value) => (Number.isNaN(value) ? "nan" : value > 0 ? "∞" : "−∞");

  /** A number with so many significant digits and no zeros behind it, as JavaScript writes it. */
  function round(value, digits) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 10 ** Math.max(digits, 8)) return String(value);
    if (size >= 1e-5 && size < 10 ** Math.max(digits, 6)) return String(Number(value.toPrecision(digits)));
    return value.toExponential(digits - 1).replace(/\.?0+e/, "e");
  }

  /** The same as a reader has it. */
  const format = (value, digits = data.digits) => (Number.isFinite(value) ? typeset(round(value, digits)) : notFinite(value));

  /** A formatter under which a tensor's values align: so many decimals for all. */
  function makeCellFormat(values) {
    const finite = values.filter(Number.isFinite);
    const largest = finite.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const digits = data.cellDigits;
    if (largest < 10 ** digits && finite.every(Number.isInteger)) return (v) => fix(v, (x) => x.toFixed(0));
    const exponent = largest ? Math.floor(Math.log10(largest)) : 0;
    if (exponent <= -5 || exponent > digits) return (v) => fix(v, (x) => x.toExponential(digits - 1));
    const decimals = Math.min(100, Math.max(0, digits - 1 - exponent));
    return (v) => fix(v, (x) => x.toFixed(decimals));
  }

  function fix(value, write) {
    if (!Number.isFinite(value)) return notFinite(value);
    const text = write(value);
    return typeset(/[1-9]/.test(text.split("e")[0]) ? text : text.replace("-", ""));
  }

  const { add, absolute, divide, elide, enclose, invert, larger, multiply, raise, relate, root, square, subtract } = arithmetic;

  /** A number as a term of what is printed. */
  function show(value) {
    if (!Number.isFinite(value)) return arithmetic.number(notFinite(value), null, true);
    const decimal = round(value, data.digits);
    return arithmetic.number(typeset(decimal), decimal, Number(decimal) === value);
  }

  const bracket = (value) => (value < 0 ? enclose(show(value)) : show(value));

  /** A number as a base or a divisor: whatever has a sign or a power of its own stands in brackets. */
  function brace(value) {
    const term = show(value);
    return /^[0-9.∞]+$|nan/.test(term.text) ? term : enclose(term);
  }

  const minus = (a, b) => subtract(show(a), bracket(b));

  // -- the data

  const x = readAll(data.input);
  const results = data.results.map((result) => ({
    ...result,
    p: read(result.p),
    normalized: readAll(result.normalized),
    statistics: Object.fromEntries(Object.entries(result.statistics).map(([name, list]) => [name, readAll(list)])),
    gamma: result.gamma && { ...result.gamma, values: readAll(result.gamma.values) },
    beta: result.beta && { ...result.beta, values: readAll(result.beta.values) },
    rounded: result.rounded && readAll(result.rounded),
  }));
  const rank = data.size.length;
  const steps = data.size.map((_, axis) => data.size.slice(axis + 1).reduce((a, b) => a * b, 1));

  /** The index of a cell within what is shown. */
  const place = (cell) => steps.map((step, axis) => Math.floor(cell / step) % data.size[axis]);
  /** Its index in the tensor. */
  const index = (cell) => place(cell).map((position, axis) => position + data.start[axis]);
  const nameCell = (cell) =>
    index(cell).map((position, axis) => `${data.names[axis]}=${position}`).join(" ") || "the value";

  for (const result of results) {
    result.members = result.groups.map(() => []);
    if (result.window) result.groups.forEach((_, cell) => (result.members[cell] = walkWindow(result.window, cell)));
    else result.owner.forEach((group, cell) => result.members[group].push(cell));
    result.format = makeCellFormat(result.normalized);
  }

  /** The cells of what is shown that lie in the window of one. */
  function walkWindow(window, cell) {
    const here = place(cell)[window.axis];
    const first = Math.max(0, here - window.before);
    const last = Math.min(data.size[window.axis] - 1, here + window.after);
    const cells = [];
    for (let there = first; there <= last; there++) cells.push(cell + (there - here) * steps[window.axis]);
    return cells;
  }

  // -- what a norm computes

  const SQUARES = { deviation: ["var", "std"], root_mean_square: ["ms", "rms"] };

  const MEANINGS = {
    min: "the smallest x", max: "the largest x", median: "what half of the x lie below",
    q1: "what a quarter of the x lie below", q3: "what a quarter of the x lie above",
  };

  /** The size of a group without eps, and what is under its root. */
  function measure(result, group) {
    const named = SQUARES[result.divisor];
    if (!named) {
      const root = result.statistics[result.spread][group];
      return { square: root * root, root };
    }
    return { square: result.statistics[named[0]][group], root: result.statistics[named[1]][group] };
  }

  /** Whether a square lies within what doubles hold, as its root does. */
  const isTame = ({ square, root }) => root === 0 || !Number.isFinite(root) || (square > 1e-290 && Number.isFinite(square));

  const EPS_MODES = {
    inside: (size, eps) => (isTame(size) ? Math.sqrt(size.square + eps) : Math.hypot(size.root, Math.sqrt(eps))),
    outside: ({ root }, eps) => root + eps,
    floor: ({ root }, eps) => Math.max(root, eps),
    "square-floor": ({ root }, eps) => Math.max(root, Math.sqrt(eps)),
  };

  /** The divisor of a group, before the rule for zeros. */
  function findDivisor(result, group, eps) {
    if (result.window) {
      const { k, alpha, size, divisor, exponent } = result.window;
      return (k + (alpha * result.statistics.ms[group] * size) / divisor) ** exponent;
    }
    const measured = measure(result, group);
    return result.epsMode ? EPS_MODES[result.epsMode](measured, eps) : measured.root;
  }

  /** What is divided by in truth: a divisor of 0 has a rule. */
  const settle = (result, divisor) => (divisor !== 0 || result.window ? divisor : result.zeroRule === "nan" ? NaN : 1);

  const centreOf = (result, group) => (result.centre ? result.statistics[result.centre][group] : 0);
  const gammaOf = (result, cell) => result.gamma.values[result.gamma.owner[cell]] + result.gammaOffset;
  const betaOf = (result, cell) => result.beta.values[result.beta.owner[cell]];

  function standardize(result, cell, divisor) {
    return (x[cell] - centreOf(result, result.owner[cell])) / divisor;
  }

  function shift(result, cell, standard) {
    const scaled = result.gamma ? gammaOf(result, cell) * standard : standard;
    return result.beta ? scaled + betaOf(result, cell) : scaled;
  }

  /** The normalized values at an eps: normcli's own at the one that was given. */
  function computeAll(result, eps) {
    if (eps === result.eps) return result.normalized;
    const divisors = result.groups.map((_, group) => settle(result, findDivisor(result, group, eps)));
    return x.map((_, cell) => shift(result, cell, standardize(result, cell, divisors[result.owner[cell]])));
  }

  // -- the arithmetic in words

  const SUM_TERMS = 8;
  const SQUARE_TERMS = 4;

  /** The sum over a group: all of a short one, the first terms and the last of one that is shown whole. */
  function sum(result, group, write, most) {
    const cells = result.members[group];
    const whole = cells.length === result.counts[group];
    const terms = cells.map((cell) => write(x[cell]));
    return whole && terms.length <= most ? add(...terms) : elide(terms, whole);
  }

  function tellCentre(result, group) {
    const n = result.counts[group];
    const mean = result.statistics.mean[group];
    const terms = n > 1 ? [divide(enclose(sum(result, group, bracket, SUM_TERMS)), show(n))] : [];
    return { term: "mean", means: "Σx / n", by: [...terms, divide(show(mean * n), show(n))], is: mean };
  }

  /** The statistics that go by the order of values: some are sums or differences of others, or half of that. */
  function tellOrder(result, group) {
    const read = (name) => result.statistics[name][group];
    return result.order.map(({ name, means, of }) => {
      if (!of) return { term: name, means: MEANINGS[name], by: [], is: read(name) };
      const [left, sign, right, half] = of;
      const both = (sign === "+" ? add : subtract)(show(read(left)), bracket(read(right)));
      const by = [half ? divide(enclose(both), show(2)) : both];
      return { term: name === result.spread ? "divisor" : name, means, by, is: read(name) };
    });
  }

  function tellSpread(result, group) {
    const n = result.counts[group] - result.ddof;
    const mean = result.statistics.mean[group];
    const value = result.statistics.var[group];
    const short = n > 0 && result.counts[group] > 1 && result.members[group].length <= SQUARE_TERMS && result.counts[group] <= SQUARE_TERMS;
    const squares = () => divide(enclose(sum(result, group, (v) => square(brace(v - mean)), SQUARE_TERMS)), show(n));
    return {
      term: "var",
      means: `Σ(x − mean)² / ${result.ddof ? `(n − ${result.ddof})` : "n"}`,
      by: [...(short ? [squares()] : []), divide(show(value * n), bracket(n))],
      is: value,
    };
  }

  function tellMeanSquare(result, group, n) {
    const value = result.statistics.ms[group];
    const terms = enclose(sum(result, group, (v) => square(brace(v)), SUM_TERMS));
    const means = result.window ? "Σx² / size" : "Σx² / n";
    return { term: "ms", means, by: [divide(terms, show(n)), divide(show(value * n), show(n))], is: value };
  }

  function tellLength(result, group) {
    const { p } = result;
    const value = result.statistics.norm[group];
    const told = (means, write, close) => ({
      term: `‖x‖${p === Infinity ? "∞" : format(p)}`,
      means,
      by: write ? [close(sum(result, group, write, SUM_TERMS))] : [],
      is: value,
    });
    const size = (v) => absolute(show(v));
    const inverse = invert(brace(p));
    if (p === 0) return told("how many x are not 0");
    if (p === Infinity) return told("the largest |x|");
    if (p === 1) return told("Σ|x|", size, (terms) => terms);
    if (p === 2) return told("√Σx²", (v) => square(brace(v)), (terms) => root(enclose(terms)));
    const means = `(Σ|x|^${brace(p).text})^${inverse.text}`;
    return told(means, (v) => raise(size(v), brace(p)), (terms) => raise(enclose(terms), inverse));
  }

  /** The steps from measured sizes to the divisor, by where eps stands. */
  function tellDivisor(result, group, eps) {
    const size = measure(result, group);
    const [squareWord, rootWord] = {
      deviation: ["var", "√var"], root_mean_square: ["ms", "√ms"],
    }[result.divisor] || ["Σx²", "‖x‖"];
    const isLength = !SQUARES[result.divisor];
    const takeRoot = isLength ? [] : [{ term: rootWord, by: [root(brace(size.square))], is: size.root }];
    const value = findDivisor(result, group, eps);
    const last = (means, ...by) => ({ term: "divisor", means, by, is: value });
    switch (result.epsMode) {
      case "inside":
        if (!isTame(size)) {
          const beyond = { term: rootWord, means: `the root of what lies beyond double precision`, by: [], is: size.root };
          return [beyond, last(`√(${squareWord} + eps)`, root(enclose(add(square(brace(size.root)), show(eps)))))];
        }
        return [
          { term: `${squareWord} + eps`, by: [add(show(size.square), show(eps))], is: size.square + eps },
          last(`√(${squareWord} + eps)`, root(brace(size.square + eps))),
        ];
      case "outside":
        return [...takeRoot, last(`${rootWord} + eps`, add(show(size.root), show(eps)))];
      case "floor":
        return [...takeRoot, last(`max(${rootWord}, eps)`, larger(show(size.root), show(eps)))];
      case "square-floor":
        return [last(`√max(${squareWord}, eps)`, root(larger(show(size.square), show(eps))))];
      default:
        return isLength ? [last(rootWord)] : [last(rootWord, root(brace(size.square)))];
    }
  }

  function tellWindow(result, group) {
    const { k, alpha, size, divisor, exponent } = result.window;
    const total = result.statistics.ms[group] * size;
    const base = k + (alpha * total) / divisor;
    const over = divisor === size ? " / size" : "";
    const scaled = multiply(bracket(alpha), show(total));
    const by = add(show(k), over ? divide(scaled, show(divisor)) : scaled);
    return [
      tellMeanSquare(result, group, size),
      { term: "base", means: `k + alpha · Σx²${over}`, by: [by], is: base },
      { term: "divisor", means: "base^exponent", by: [raise(brace(base), brace(exponent))], is: base ** exponent },
    ];
  }

  /** What is computed once for a group. */
  function tellGroup(result, group, eps) {
    if (result.window) return tellWindow(result, group);
    const told = result.order ? tellOrder(result, group) : [];
    if (result.centre && !result.order) {
      told.push(result.given ? { term: "mean", means: "as given", by: [], is: result.statistics.mean[group] } : tellCentre(result, group));
    }
    if (result.given) told.push({ term: "var", means: "as given", by: [], is: measure(result, group).square });
    else if (result.divisor === "deviation") told.push(tellSpread(result, group));
    else if (result.divisor === "root_mean_square") told.push(tellMeanSquare(result, group, result.counts[group]));
    else if (!result.order) told.push(tellLength(result, group));
    if (!result.order) told.push(...tellDivisor(result, group, eps));
    const divisor = findDivisor(result, group, eps);
    if (divisor === 0) {
      const means = result.zeroRule === "nan" ? "0 divides nothing: nan" : "0 divides nothing: 1 stands for it";
      told.push({ term: "divisor", means, by: [], is: settle(result, divisor) });
    }
    return told;
  }

  /** The way of one value from x to y. */
  function tellValue(result, cell, eps) {
    const group = result.owner[cell];
    const mean = centreOf(result, group);
    const divisor = settle(result, findDivisor(result, group, eps));
    const y = state.values[cell];
    const isMoved = eps !== result.eps;
    const affine = result.gamma || result.beta;
    const rounds = result.dtype !== "float64";
    const top = x[cell] - mean;
    const quotient = { means: result.centre ? `(x − ${result.centre}) / divisor` : "x / divisor", by: [divide(bracket(top), brace(divisor))] };
    const told = [{ term: "x", by: [], is: x[cell], key: "x" }];
    if (result.centre) told.push({ term: `x − ${result.centre}`, by: [minus(x[cell], mean)], is: top });
    if (!affine && !rounds) return [...told, { term: "y", ...quotient, is: y, key: "y" }];
    let standard = standardize(result, cell, divisor);
    told.push({ term: "x̂", ...quotient, is: standard });
    const roundsBefore = result.rounded && !isMoved;
    if (roundsBefore) {
      standard = result.rounded[cell];
      told.push({ term: "x̂", means: `${quotient.means}, rounded to ${result.dtype} before gamma`, by: [], is: standard });
    }
    let unrounded = "x̂";
    if (affine) {
      const { words, by } = tellAffine(result, cell, standard);
      if (!rounds) return [...told, { term: "y", means: words, by: [by], is: y, key: "y" }];
      told.push({ term: words, by: [by], is: shift(result, cell, standard) });
      unrounded = words;
    }
    const how = isMoved ? `in double precision, not rounded to ${result.dtype}` : `rounded ${roundsBefore ? "again" : "once"}, to ${result.dtype}`;
    return [...told, { term: "y", means: `${unrounded}, ${how}`, by: [], is: y, key: "y" }];
  }

  /** gamma · x̂ + beta, or what there is of it. */
  function tellAffine(result, cell, standard) {
    const { gamma, beta, gammaOffset: offset } = result;
    const words = [];
    const terms = [];
    if (gamma) {
      const [name, value] = [gamma.names[gamma.owner[cell]], gamma.values[gamma.owner[cell]]];
      words.push(`${offset ? `(${offset} + ${name})` : name} · x̂`);
      terms.push(multiply(offset ? enclose(add(show(offset), bracket(value))) : bracket(value), bracket(standard)));
    } else {
      words.push("x̂");
      terms.push(show(standard));
    }
    if (beta) {
      words.push(beta.names[beta.owner[cell]]);
      terms.push(bracket(betaOf(result, cell)));
    }
    return { words: words.join(" + "), by: add(...terms) };
  }

  // -- the page

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const state = { shown: 0, selected: null, hovered: null, side: "x", eps: results.map((result) => result.eps), values: [] };
  const current = () => results[state.shown];
  const COLOURS = 8;
  const cells = { x: [], y: [] };
  const grids = [];

  // One matrix, or tall ones, stand beside their normalized values; many stand above them, so that more fit.
  const stacked = rank > 2 && data.size[rank - 2] <= 2 * data.size[rank - 1];

  // Transitions of thousands of cells would take a tenth of a second for each of them that is moved over.
  const MOST_ANIMATED = 512;

  /** Build the matrices: one for each index of all axes but the last two. */
  function buildTensor() {
    const columns = rank ? data.size[rank - 1] : 1;
    const rows = rank > 1 ? data.size[rank - 2] : 1;
    const section = find("tensor");
    if (!x.length) {
      section.append(make("p", {}, "The tensor holds no values."));
      return;
    }
    section.append(make("p", { class: "caption" }, caption()));
    section.classList.toggle("stacked", stacked);
    section.classList.toggle("many", x.length > MOST_ANIMATED);
    let band = null;
    for (let first = 0; first < x.length; first += rows * columns) {
      const outer = index(first).slice(0, -2);
      if (band === null || rank < 3 || place(first)[rank - 3] === 0) section.append((band = make("div", { class: "band" })));
      const name = rank > 2 ? outer.map((position, axis) => `${data.names[axis]}=${position}`).join(" ") : "";
      const pair = make("div", { class: "pair" });
      for (const side of ["x", "y"]) pair.append(buildGrid(side, name, first, rows, columns));
      const figure = make("figure", { class: "matrix" }, pair);
      if (name) figure.prepend(make("figcaption", {}, name));
      band.append(figure);
      grids.push({ first, rows, columns });
    }
  }

  function caption() {
    if (rank < 2) return rank ? `along ${data.names[0]}` : "one value";
    const text = `rows ${data.names[rank - 2]}, columns ${data.names[rank - 1]}`;
    return rank === 2 ? text : `${text}, a matrix for each ${data.names.slice(0, -2).join(" ")}`;
  }

  function buildGrid(side, name, first, rows, columns) {
    const title = side === "x" ? "input" : "normalized";
    const table = make("table", { role: "grid", "aria-label": `${title}${name && `, ${name}`}` });
    const head = make("tr");
    if (rank > 1) head.append(make("th", { scope: "col" }, `${data.names[rank - 2]}\\${data.names[rank - 1]}`));
    const from = rank ? data.start[rank - 1] : 0;
    for (let column = 0; column < columns && rank; column++) {
      head.append(make("th", { scope: "col" }, data.columns ? data.columns[column] : String(from + column)));
    }
    if (rank) table.append(make("thead", {}, head));
    const body = make("tbody");
    for (let row = 0; row < rows; row++) {
      const line = make("tr");
      if (rank > 1) line.append(make("th", { scope: "row" }, String(data.start[rank - 2] + row)));
      for (let column = 0; column < columns; column++) {
        const cell = first + row * columns + column;
        const box = make("td", { tabindex: "-1", "data-cell": cell });
        cells[side][cell] = box;
        line.append(box);
      }
      body.append(line);
    }
    table.append(body);
    const label = make("p", { class: "side", "aria-hidden": "true" }, title);
    return make("div", { class: `side-${side}` }, label, table);
  }

  /** Write what the chosen norm and eps make of every cell; of another eps, the input knows nothing. */
  function paint(sides = ["x", "y"]) {
    const result = current();
    const eps = state.eps[state.shown];
    state.values = computeAll(result, eps);
    const formatInput = makeCellFormat(x);
    const formatOutput = eps === result.eps ? result.format : makeCellFormat(state.values);
    x.forEach((value, cell) => {
      const group = result.owner[cell];
      const number = result.numbers[group];
      const colour = result.window ? "plain" : `c${number % COLOURS}`;
      const told = result.window ? "" : `, group ${result.groups[group]}`;
      for (const side of sides) {
        const box = cells[side][cell];
        const shown = side === "x" ? value : state.values[cell];
        box.className = colour;
        box.textContent = (side === "x" ? formatInput : formatOutput)(shown);
        box.dataset.value = spell(shown);
        box.setAttribute("aria-label", `${side === "x" ? "input" : "normalized"} ${format(shown)}, ${nameCell(cell)}${told}`);
        if (result.window) delete box.dataset.group;
        else box.dataset.group = number;
      }
    });
    sides.forEach(alignColumns);
    const tag = result.window ? 1 : Math.max(1, ...result.numbers.map((number) => String(number).length));
    find("tensor").style.setProperty("--tag", tag);
    light();
    tellExactness();
    paintGroups();
  }

  /** Make the columns of all matrices of a side as wide as its longest text. */
  function alignColumns(side) {
    const longest = cells[side].reduce((most, box) => Math.max(most, box.textContent.length), 0);
    for (const part of document.querySelectorAll(`.side-${side}`)) part.style.setProperty("--characters", longest);
  }

  let lit = [];

  /** Light the group (or window) of the cell that is pointed at, or else of the one selected. */
  function light() {
    const result = current();
    const cell = state.hovered ?? state.selected;
    for (const box of lit) box.classList.remove("lit", "chosen");
    lit = [];
    find("tensor").classList.toggle("dimmed", cell !== null);
    for (const row of document.querySelectorAll("#groups tr.lit")) row.classList.remove("lit");
    if (cell !== null) {
      const group = result.owner[cell];
      for (const side of ["x", "y"]) {
        for (const member of result.members[group]) {
          cells[side][member].classList.add("lit");
          lit.push(cells[side][member]);
        }
        cells[side][cell].classList.add("chosen");
      }
      const row = document.querySelector(`#groups tr[data-group="${result.numbers[group]}"]`);
      if (row) row.classList.add("lit");
    }
    tellStory(cell);
  }

  function makeSteps(steps) {
    const list = make("dl");
    for (const step of steps) {
      const value = make("strong", { class: "is", "data-value": spell(step.is) }, format(step.is));
      if (step.key) value.dataset.key = step.key;
      const detail = make("dd");
      if (step.means) detail.append(make("span", { class: "means" }, `= ${step.means}`), " ");
      const links = [...step.by, show(step.is)];
      // The first link is of what is called by name above: equal to it if no digit is left out.
      const signs = links.map((link, n) => (n ? relate(links[n - 1], link) : link.exact ? "=" : "≈"));
      step.by.forEach((term, n) => detail.append(make("span", { class: "by" }, `${signs[n]} ${term.text}`), " "));
      detail.append(make("span", { class: "end" }, `${signs.at(-1)} `, value));
      list.append(make("div", {}, make("dt", {}, step.term), detail));
    }
    return list;
  }

  function tellStory(cell) {
    const story = find("story");
    story.replaceChildren();
    const result = current();
    const affine = (result.gamma ? (result.gammaOffset ? ` · (${result.gammaOffset} + gamma)` : " · gamma") : "") + (result.beta ? " + beta" : "");
    story.append(make("p", { class: "formula" }, `y = ${result.formula}${affine}`));
    if (cell === null) {
      const hint = x.length ? "Point at a value, tap it or move to it with the arrow keys: its group lights up, and its way from x to y is shown here." : "";
      story.append(make("p", { class: "hint" }, hint));
      return;
    }
    const eps = state.eps[state.shown];
    const group = result.owner[cell];
    const count = result.counts[group];
    const here = result.members[group].length;
    const part = here < count ? `, ${here} of them shown; the statistics are of all ${count.toLocaleString("en")}` : "";
    const kind = result.window ? "Window of" : "Group";
    const badge = result.window ? [] : [make("span", { class: `badge c${result.numbers[group] % COLOURS}` }, String(result.numbers[group]))];
    const from = make("small", {}, nameCell(cell));
    story.append(
      make("p", { class: "way" }, from, `${format(x[cell])} → ${format(state.values[cell])}`),
      drawWay(result, cell) ?? "",
      make("h2", {}, ...badge, result.groupCount === 1 ? "The only group" : `${kind} ${result.groups[group]}`),
      make("p", { class: "count" }, `n = ${count.toLocaleString("en")} value${count === 1 ? "" : "s"}${part}`),
      makeSteps(tellGroup(result, group, eps)),
      make("h2", {}, "The value"),
      makeSteps(tellValue(result, cell, eps)),
    );
  }

  const MOST_PATHS = 256;

  /** The group on two lines of one scale: where its values lie as x, and where they come to lie as y. */
  function drawWay(result, cell) {
    const members = result.members[result.owner[cell]].slice(0, MOST_PATHS);
    const values = members.flatMap((member) => [x[member], state.values[member]]);
    const own = [x[cell], state.values[cell]];
    const ends = [0, ...values, ...own];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    if (!Number.isFinite(high - low) || high === low) return null;
    const [left, right, top, bottom] = [22, 338, 26, 84];
    const scale = (value) => left + ((value - low) / (high - low)) * (right - left);
    const draw = (tag, attributes, ...children) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      element.append(...children);
      return element;
    };
    const colour = result.window ? "" : `c${result.numbers[result.owner[cell]] % COLOURS}`;
    const label = `The values of the group on a line as x, and below it as y: ${format(own[0])} goes to ${format(own[1])}`;
    const picture = draw("svg", { id: "way", viewBox: "0 0 360 106", role: "img", "aria-label": label, class: colour });
    for (const [name, y] of [["x", top], ["y", bottom]]) {
      picture.append(draw("line", { class: "axis", x1: left, x2: right, y1: y, y2: y }));
      picture.append(draw("text", { x: 4, y: y + 4 }, name));
    }
    const mark = (value, y, text, above) => {
      const at = scale(value);
      const anchor = at < 60 ? "start" : at > 300 ? "end" : "middle";
      picture.append(draw("line", { class: "axis", x1: at, x2: at, y1: y - 7, y2: y + 7 }));
      picture.append(draw("text", { x: at, y: above ? y - 12 : y + 20, "text-anchor": anchor }, text));
    };
    if (result.centre) mark(centreOf(result, result.owner[cell]), top, result.centre, true);
    mark(0, bottom, "0", false);
    const path = (from, to, kind) => picture.append(draw("line", { class: `path${kind}`, x1: scale(from), x2: scale(to), y1: top, y2: bottom }));
    const dot = (value, y, kind) => picture.append(draw("circle", { class: `dot${kind}`, cx: scale(value), cy: y, r: kind ? 5 : 3.2 }));
    for (const member of members) path(x[member], state.values[member], "");
    path(...own, " own");
    for (const member of members) [x[member], state.values[member]].forEach((value, line) => dot(value, line ? bottom : top, ""));
    own.forEach((value, line) => dot(value, line ? bottom : top, " own"));
    return picture;
  }

  const MOST_GROUPS = 24;

  /** The groups with their statistics: what the colours mean. */
  function paintGroups() {
    const result = current();
    const section = find("groups");
    section.replaceChildren();
    const named = results.length > 1 ? [`${result.normTitle}${result.like ? ` like ${result.like}` : ""}`] : [];
    find("facts").textContent = [...named, ...result.reduction].join(" · ");
    for (const warning of result.warnings) section.append(make("p", { class: "warning" }, `Note: ${warning}`));
    if (result.window || !x.length) return;
    section.append(make("h2", {}, "Groups"));
    const names = Object.keys(result.statistics);
    const head = make("tr", {}, ...["group", "count", ...names].map((name) => make("th", { scope: "col" }, name)));
    const body = make("tbody");
    result.groups.slice(0, MOST_GROUPS).forEach((name, group) => {
      const number = result.numbers[group];
      const badge = make("span", { class: `badge c${number % COLOURS}` }, String(number));
      const row = make("tr", { "data-group": number }, make("th", { scope: "row" }, badge, ` ${name}`), make("td", {}, result.counts[group].toLocaleString("en")));
      for (const statistic of names) {
        const value = result.statistics[statistic][group];
        const text = make("td", { "data-value": spell(value), "data-statistic": statistic }, format(value));
        row.append(text);
      }
      body.append(row);
    });
    section.append(make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Statistics of the groups" }, make("table", {}, make("thead", {}, head), body)));
    const hidden = result.groupCount - Math.min(MOST_GROUPS, result.groups.length);
    const notes = [];
    if (hidden) notes.push(`${hidden.toLocaleString("en")} of ${result.groupCount.toLocaleString("en")} groups are not listed.`);
    if (data.slice) notes.push("The statistics are of the whole groups, of which this page shows a part.");
    if (result.epsMode !== null && result.statistics.rstd) notes.push("rstd is 1/divisor at the eps that was given.");
    if (notes.length) section.append(make("p", { class: "note" }, notes.join(" ")));
  }

  // -- eps

  const LOWEST = -16;
  const STEPS = 10;
  const toEps = (position) => (position === 0 ? 0 : Number((10 ** (LOWEST + (position - 1) / STEPS)).toPrecision(3)));
  const toPosition = (eps) => (eps === 0 ? 0 : Math.min(181, Math.max(1, Math.round((Math.log10(eps) - LOWEST) * STEPS) + 1)));

  function tellExactness() {
    const result = current();
    const eps = state.eps[state.shown];
    const moved = eps !== result.eps;
    const slider = find("eps-slider");
    const number = find("eps-number");
    const has = result.epsMode !== null;
    for (const control of [slider, number]) control.disabled = !has;
    find("epsilon").classList.toggle("absent", !has);
    find("reset").disabled = !moved;
    if (has) {
      slider.value = toPosition(eps);
      slider.setAttribute("aria-valuetext", spell(eps));
      if (Number(number.value) !== eps || number.value === "") number.value = String(eps);
      number.removeAttribute("aria-invalid");
    } else {
      number.value = "";
    }
    const modes = { inside: "inside the root", outside: "added to the root", floor: "the least divisor", "square-floor": "the least square" };
    find("eps-mode").textContent = has ? modes[result.epsMode] : "this norm has none";
    const status = find("exactness");
    status.classList.toggle("moved", moved);
    const short = result.dtype !== "float64";
    const unrounded = short ? ` and not rounded to ${result.dtype}` : "";
    const rounded = short ? `, rounded ${result.rounded ? "before gamma and again" : "once"} to ${result.dtype}` : "";
    const told = moved
      ? `Moved: at eps = ${format(eps)} the page computes x̂ and y itself, in double precision${unrounded}; Reset brings back normcli's exact numbers at eps = ${format(result.eps)}.`
      : `Exact: these are normcli's own numbers${has ? `, at eps = ${format(eps)}` : ""}${rounded}.`;
    if (status.textContent !== told) status.textContent = told;
  }

  function moveEps(eps) {
    state.eps[state.shown] = eps;
    paint(["y"]);
    if (state.selected !== null) say(state.selected);
  }

  // -- moving about

  function select(cell, side, { focus = true } = {}) {
    const before = document.querySelectorAll('#tensor td[aria-selected="true"]');
    for (const box of before) box.removeAttribute("aria-selected");
    state.selected = cell;
    if (side) state.side = side;
    if (cell !== null) {
      const box = cells[state.side][cell];
      settleTabStop(box);
      box.setAttribute("aria-selected", "true");
      if (focus && document.activeElement !== box) box.focus({ preventScroll: false });
      say(cell);
    } else {
      find("said").textContent = "Nothing is selected.";
    }
    light();
  }

  let tabStop = null;

  /** One cell alone can be tabbed to: the last that was at work. */
  function settleTabStop(box) {
    if (tabStop) tabStop.tabIndex = -1;
    tabStop = box;
    if (tabStop) tabStop.tabIndex = 0;
  }

  function say(cell) {
    const result = current();
    const group = result.owner[cell];
    const of = result.window ? `window of ${result.counts[group]} values` : `group ${result.groups[group]}, ${result.counts[group]} values`;
    const centre = result.centre ? `, ${result.centre} ${format(centreOf(result, group), 5)}` : "";
    find("said").textContent = `${nameCell(cell)}: input ${format(x[cell], 5)}, normalized ${format(state.values[cell], 5)}, ${of}${centre}.`;
  }

  const isShown = (side) => !find("tensor").classList.contains(side === "x" ? "only-y" : "only-x");

  /** Where a key leads from a cell: [cell, side], or null where it leads nowhere. */
  function follow(key, cell, side) {
    const size = grids[0].rows * grids[0].columns;
    const { columns, rows } = grids[0];
    const within = cell % size;
    const [row, column] = [Math.floor(within / columns), within % columns];
    const start = cell - column;
    switch (key) {
      case "ArrowRight":
        if (column < columns - 1) return [cell + 1, side];
        return !stacked && side === "x" && isShown("y") ? [start, "y"] : null;
      case "ArrowLeft":
        if (column > 0) return [cell - 1, side];
        return !stacked && side === "y" && isShown("x") ? [start + columns - 1, "x"] : null;
      case "ArrowDown":
        if (row < rows - 1) return [cell + columns, side];
        return stacked && side === "x" && isShown("y") ? [cell - row * columns, "y"] : null;
      case "ArrowUp":
        if (row > 0) return [cell - columns, side];
        return stacked && side === "y" && isShown("x") ? [cell + (rows - 1) * columns, "x"] : null;
      case "Home": return [start, side];
      case "End": return [start + columns - 1, side];
      case "PageDown": return cell + size < x.length ? [cell + size, side] : null;
      case "PageUp": return cell >= size ? [cell - size, side] : null;
      default: return null;
    }
  }

  const KEYS = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End", "PageDown", "PageUp"];

  function listen() {
    const tensor = find("tensor");
    const cellOf = (event) => {
      const box = event.target.closest ? event.target.closest("td[data-cell]") : null;
      return box && { box, cell: Number(box.dataset.cell), side: box.closest(".side-x") ? "x" : "y" };
    };
    tensor.addEventListener("pointerover", (event) => {
      if (event.pointerType === "touch") return;
      const hit = cellOf(event);
      const cell = hit ? hit.cell : null;
      if (cell !== state.hovered) {
        state.hovered = cell;
        light();
      }
    });
    tensor.addEventListener("pointerleave", () => {
      if (state.hovered === null) return;
      state.hovered = null;
      light();
    });
    tensor.addEventListener("click", (event) => {
      const hit = cellOf(event);
      if (hit) select(hit.cell, hit.side);
    });
    tensor.addEventListener("focusin", (event) => {
      const hit = cellOf(event);
      if (hit && (hit.cell !== state.selected || hit.side !== state.side)) select(hit.cell, hit.side, { focus: false });
    });
    tensor.addEventListener("keydown", (event) => {
      const hit = cellOf(event);
      if (!hit || event.ctrlKey || event.metaKey || event.altKey || !KEYS.includes(event.key)) return;
      event.preventDefault();
      state.hovered = null;
      const next = follow(event.key, hit.cell, hit.side);
      if (next) select(...next);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      state.hovered = null;
      if (state.selected !== null) select(null);
      else light();
    });
    find("controls").addEventListener("submit", (event) => event.preventDefault());
    find("eps-slider").addEventListener("input", (event) => moveEps(toEps(Number(event.target.value))));
    find("eps-number").addEventListener("input", (event) => {
      const eps = event.target.value === "" ? NaN : Number(event.target.value);
      if (eps >= 0 && Number.isFinite(eps)) moveEps(eps);
      else event.target.setAttribute("aria-invalid", "true");
    });
    find("eps-number").addEventListener("change", tellExactness);
    find("reset").addEventListener("click", () => {
      moveEps(current().eps);
      find(current().epsMode ? "eps-slider" : "tensor").focus();
    });
  }

  /** A row of radio buttons that looks like a switch. */
  function buildChoice(fieldset, name, choices, chosen, act) {
    choices.forEach((choice, number) => {
      const input = make("input", { type: "radio", name, value: choice.value ?? number });
      input.checked = number === chosen;
      input.addEventListener("change", () => act(number));
      fieldset.append(make("label", choice.title ? { title: choice.title } : {}, input, make("span", {}, choice.label)));
    });
  }

  function buildControls() {
    if (results.length > 1) {
      find("norms").hidden = false;
      const named = results.map((result) => ({ label: nameResult(result), title: result.normTitle }));
      buildChoice(find("norms"), "norm", named, 0, (number) => {
        state.shown = number;
        paint();
        if (state.selected !== null) say(state.selected);
      });
    }
    const views = [{ label: "both", value: "both" }, { label: "input", value: "x" }, { label: "normalized", value: "y" }];
    buildChoice(find("views"), "view", views, 0, (number) => {
      const tensor = find("tensor");
      tensor.classList.toggle("only-x", number === 1);
      tensor.classList.toggle("only-y", number === 2);
      if (!isShown(state.side)) state.side = state.side === "x" ? "y" : "x";
      if (x.length) settleTabStop(cells[state.side][state.selected ?? 0]);
    });
  }

  /** A norm's name, with what tells two rows of the same norm apart. */
  function nameResult(result) {
    if (results.filter((other) => other.name === result.name).length === 1) return result.name;
    const same = results.filter((other) => other.norm === result.norm);
    const told = (other) => [other.norm, other.reduction[1], other.like && `like ${other.like}`].filter(Boolean).join(" ");
    const alike = same.filter((other) => told(other) === told(result));
    return alike.length === 1 ? told(result) : `${told(result)} (${alike.indexOf(result) + 1})`;
  }

  find("source").textContent = `${data.source} · ${data.shapeText} · ${data.dtype}`;
  if (data.slice) {
    const slice = find("slice");
    slice.hidden = false;
    slice.textContent = `A part of the tensor: ${data.slice}. Statistics are those of the whole groups.`;
  }
  buildTensor();
  buildControls();
  listen();
  if (x.length) settleTabStop(cells.x[0]);
  paint();
  if (data.at) {
    const cell = data.at.reduce((sum, position, axis) => sum + (position - data.start[axis]) * steps[axis], 0);
    select(cell, "x", { focus: false });
  }
})();
