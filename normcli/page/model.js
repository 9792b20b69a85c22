// What is known and what was moved: the tensor, the results, and what follows from them.

/** A message in the page's language, with its values: `{0}` is the first. */
const say = (text, ...values) => (data.words[text] ?? text).replace(/\{(\d)\}/g, (_, place) => values[place]);

/** A number of values, in words. */
const sayValues = (n) => (n === 1 ? say("{0} value", count(n)) : say("{0} values", count(n)));

const find = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const count = (number) => number.toLocaleString("en");

// -- the tensor

/** The values as normcli had them, and as they are now. */
const given = readAll(data.input);
const x = [...given];
const isEdited = (cell) => !Object.is(x[cell], given[cell]);

const rank = data.size.length;
const strides = data.size.map((_, axis) => data.size.slice(axis + 1).reduce((a, b) => a * b, 1));
const columns = rank ? data.size[rank - 1] : 1;
const rows = rank > 1 ? data.size[rank - 2] : 1;

/** The index of a cell within what is shown. */
const place = (cell) => strides.map((stride, axis) => Math.trunc(cell / stride) % data.size[axis]);
/** Its index in the tensor. */
const index = (cell) => place(cell).map((position, axis) => position + data.start[axis]);
const nameIndex = (positions) => positions.map((position, axis) => `${data.names[axis]}=${position}`).join(" ");
const nameCell = (cell) => nameIndex(index(cell)) || say("the value");

/** The cell of an index in the tensor, or null. */
function findCell(positions) {
  const here = positions.map((position, axis) => position - data.start[axis]);
  const isShown = here.length === rank && here.every((position, axis) => position >= 0 && position < data.size[axis]);
  return isShown && x.length ? here.reduce((sum, position, axis) => sum + position * strides[axis], 0) : null;
}

// -- the results

/** The cells of what is shown that lie in the window of one. */
function listWindow({ axis, before, after }, cell) {
  const here = place(cell)[axis];
  const [first, last] = [Math.max(0, here - before), Math.min(data.size[axis] - 1, here + after)];
  return Array.from({ length: last - first + 1 }, (_, step) => cell + (first + step - here) * strides[axis]);
}

/** The number of each cell, of what each position along each axis adds to it. */
const readOwners = (tables) =>
  given.map((_, cell) => place(cell).reduce((sum, position, axis) => sum + tables[axis][position], 0));

const readNamed = (lists) => Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, readAll(list)]));

const results = data.results.map((result) => {
  const normalized = readAll(result.normalized);
  const owner = readOwners(result.owner);
  const members = result.groups.map((_, group) => (result.window ? listWindow(result.window, group) : []));
  if (!result.window) owner.forEach((group, cell) => members[group].push(cell));
  const parameters = readNamed(result.parameters.values);
  return {
    ...result,
    normalized,
    owner,
    members,
    factor: result.factor && { ...result.factor, values: readAll(result.factor.values) },
    parameters: { ...result.parameters, owner: readOwners(result.parameters.owner), values: parameters },
    statistics: readNamed(result.statistics),
    standardized: result.standardized ? readAll(result.standardized) : normalized,
    // What the reader may move: eps, and each value of gamma and beta.
    moved: { eps: result.eps, ...Object.fromEntries(Object.entries(parameters).map(([name, list]) => [name, [...list]])) },
  };
});

/** Statistics follow an edit only where all values of every group are here. */
const canEdit = results.every(
  (result) => result.measuring.length && result.members.every((members, group) => members.length === result.counts[group]),
);

const state = { shown: 0, beside: 1, step: 0, selected: null, side: "x", pointed: null };
const current = () => results[state.shown];

/** The norm that stands beside in a wide window, the one that was shown before; null without any. */
const wide = matchMedia("(min-width: 1600px)");
const findBeside = () => (wide.matches ? (results[state.beside] ?? null) : null);

/** A result's step of a name, or else its last. */
const findStep = (result, name) => result.steps.find((step) => step.name === name) ?? result.steps.at(-1);

/** The step that is shown, of those that the norm has; the last unless one was chosen. */
const stepNumber = () => Math.min(state.step, current().steps.length - 1);

const parameterNames = (result) => Object.keys(result.parameters.values);

/** Whether a cell's gamma or beta were moved. */
const isScaledAnew = (result, cell) =>
  parameterNames(result).some((name) => {
    const owner = result.parameters.owner[cell];
    return !Object.is(result.moved[name][owner], result.parameters.values[name][owner]);
  });

const hasNewParameters = (result) =>
  parameterNames(result).some((name) => result.moved[name].some((value, n) => !Object.is(value, result.parameters.values[name][n])));

const hasNewEps = (result) => result.moved.eps !== result.eps;

/** What is not as normcli had it, in words. */
function listMoved(result) {
  const edits = x.filter((_, cell) => isEdited(cell)).length;
  const names = parameterNames(result).filter((name) =>
    result.moved[name].some((value, n) => !Object.is(value, result.parameters.values[name][n])),
  );
  return [
    ...(edits ? [say("{0} of the input", sayValues(edits))] : []),
    ...names,
    ...(hasNewEps(result) ? [`eps = ${format(result.moved.eps)}`] : []),
  ];
}

function resetAll() {
  given.forEach((value, cell) => (x[cell] = value));
  for (const result of results) {
    result.moved.eps = result.eps;
    for (const name of parameterNames(result)) result.moved[name] = [...result.parameters.values[name]];
  }
}

// -- what follows

/** What is computed once for a group: the steps, and the values of all names. */
function workGroup(result, group) {
  const members = result.members[group].map((cell) => x[cell]);
  const isAnew = result.members[group].some(isEdited);
  const isMoved = isAnew || hasNewEps(result);
  const values = { ...UNREADABLE, ...result.constants, n: result.counts[group], eps: result.moved.eps, [MEMBERS]: members };
  for (const [name, list] of Object.entries(result.statistics)) values[name] = list[group];
  const measure = (isOf) => result.measuring.filter(([, tree]) => isOf(tree)).forEach(([name, tree]) => (values[name] = evaluate(tree, values)));
  if (isAnew) measure((tree) => !usesDivisor(tree));
  const steps = work(result.groupArithmetic[result.variants[group]], values, isMoved);
  if (isMoved) measure(usesDivisor);
  return { steps, isMoved, scope: { values, labels: {}, members, isWhole: members.length === values.n } };
}

const usesDivisor = (tree) => tree === "divisor" || (Array.isArray(tree) && tree.slice(1).some(usesDivisor));

/** What is computed for one value, after its group. */
function workValue(result, cell, ofGroup) {
  const isScaled = isScaledAnew(result, cell);
  const isMoved = ofGroup.isMoved || isScaled;
  const values = Object.assign(Object.create(ofGroup.scope.values), { x: x[cell] });
  if (!isMoved) values.y = result.normalized[cell];
  if (!isMoved && result.roundsTwice) values.rounded = result.standardized[cell];
  const labels = {};
  const { owner, places } = result.parameters;
  const { factor } = result;
  if (factor) [values[factor.name], labels[factor.name]] = [factor.values[cell], factor.label];
  for (const name of parameterNames(result)) {
    [values[name], labels[name]] = [result.moved[name][owner[cell]], `${name}${places[owner[cell]]}`];
  }
  const arithmetic = hasNewParameters(result) ? result.movedArithmetic : result.valueArithmetic;
  const steps = work(arithmetic, values, isMoved);
  const standardized = ofGroup.isMoved ? (values["x̂"] ?? values.y) : result.standardized[cell];
  return { steps, standardized, scope: { values, labels } };
}

/** The numbers of a result as they are now: of each group, and of each cell y and what the step shows. */
function calculate(result, step) {
  const groups = result.groups.map((_, group) => workGroup(result, group));
  const { show } = step;
  const y = [];
  const z = [];
  x.forEach((_, cell) => {
    const { scope, standardized } = workValue(result, cell, groups[result.owner[cell]]);
    y.push(scope.values.y);
    z.push(show === "x̂" ? standardized : evaluate(show, scope.values));
  });
  return { groups, x, y, z, step };
}
