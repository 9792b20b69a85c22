// The page itself: the tensor as tables, the arithmetic of the value that is pointed at, the groups, the controls.

const find = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const count = (number) => number.toLocaleString("en");

// -- the data

const x = readAll(data.input);
const rank = data.size.length;
const strides = data.size.map((_, axis) => data.size.slice(axis + 1).reduce((a, b) => a * b, 1));

/** The index of a cell within what is shown. */
const place = (cell) => strides.map((stride, axis) => Math.trunc(cell / stride) % data.size[axis]);
/** Its index in the tensor. */
const index = (cell) => place(cell).map((position, axis) => position + data.start[axis]);
const nameIndex = (positions) => positions.map((position, axis) => `${data.names[axis]}=${position}`).join(" ");
const nameCell = (cell) => nameIndex(index(cell)) || "the value";

/** The cells of what is shown that lie in the window of one. */
function listWindow({ axis, before, after }, cell) {
  const here = place(cell)[axis];
  const [first, last] = [Math.max(0, here - before), Math.min(data.size[axis] - 1, here + after)];
  return Array.from({ length: last - first + 1 }, (_, step) => cell + (first + step - here) * strides[axis]);
}

const readParameter = (parameter) => parameter && { ...parameter, values: readAll(parameter.values) };

const results = data.results.map((result) => {
  const normalized = readAll(result.normalized);
  const members = result.groups.map((_, group) => (result.window ? listWindow(result.window, group) : []));
  if (!result.window) result.owner.forEach((group, cell) => members[group].push(cell));
  return {
    ...result,
    normalized,
    members,
    format: makeCellFormat(normalized),
    statistics: Object.fromEntries(Object.entries(result.statistics).map(([name, list]) => [name, readAll(list)])),
    gamma: readParameter(result.gamma),
    beta: readParameter(result.beta),
    rounded: result.rounded && readAll(result.rounded),
  };
});

const state = { shown: 0, selected: null, hovered: null, side: "x", eps: results.map((result) => result.eps), values: [] };
const current = () => results[state.shown];
const currentEps = () => state.eps[state.shown];
const isMoved = () => currentEps() !== current().eps;

// -- the arithmetic

/** What is computed once for a group: the steps, and the values of all names. */
function workGroup(result, group) {
  const values = { ...UNREADABLE, ...result.constants, n: result.counts[group], eps: currentEps() };
  for (const [name, list] of Object.entries(result.statistics)) values[name] = list[group];
  const steps = work(result.groupArithmetic[result.variants[group]], values, isMoved());
  const members = result.members[group];
  return { steps, scope: { values, labels: {}, members: members.map((cell) => x[cell]), isWhole: members.length === values.n } };
}

/** What is computed for one value, after its group. */
function workValue(result, cell, groupValues) {
  const values = Object.assign(Object.create(groupValues), { x: x[cell] });
  if (!isMoved()) Object.assign(values, { y: result.normalized[cell], rounded: result.rounded?.[cell] });
  const labels = {};
  for (const name of ["gamma", "beta"]) {
    if (!result[name]) continue;
    const owner = result[name].owner[cell];
    [values[name], labels[name]] = [result[name].values[owner], result[name].names[owner]];
  }
  return { steps: work(result.valueArithmetic, values, isMoved()), scope: { values, labels } };
}

/** The normalized values: normcli's own at the eps that was given. */
function computeAll(result) {
  if (!isMoved()) return result.normalized;
  const groups = result.groups.map((_, group) => workGroup(result, group).scope.values);
  return x.map((_, cell) => workValue(result, cell, groups[result.owner[cell]]).scope.values.y);
}

// -- the tensor

const COLOURS = 8;
const cells = { x: [], y: [] };
const SIDES = { x: "input", y: "normalized" };

const columns = rank ? data.size[rank - 1] : 1;
const rows = rank > 1 ? data.size[rank - 2] : 1;

// One matrix, or tall ones, stand beside their normalized values; many stand above them, so that more fit.
const isStacked = rank > 2 && rows <= 2 * columns;

// Transitions of thousands of cells would take a tenth of a second for each of them that is moved over.
const MOST_ANIMATED = 512;

/** Build the matrices: one for each index of all axes but the last two. */
function buildTensor() {
  const section = find("tensor");
  if (!x.length) {
    section.append(make("p", {}, "The tensor holds no values."));
    return;
  }
  section.append(make("p", { class: "caption" }, formatCaption()));
  section.classList.toggle("stacked", isStacked);
  section.classList.toggle("many", x.length > MOST_ANIMATED);
  let band = null;
  for (let first = 0; first < x.length; first += rows * columns) {
    if (band === null || rank < 3 || place(first)[rank - 3] === 0) section.append((band = make("div", { class: "band" })));
    const name = nameIndex(index(first).slice(0, -2));
    const pair = make("div", { class: "pair" }, ...["x", "y"].map((side) => buildMatrix(side, name, first)));
    band.append(make("figure", { class: "matrix" }, ...(name ? [make("figcaption", {}, name)] : []), pair));
  }
}

function formatCaption() {
  if (rank < 2) return rank ? `along ${data.names[0]}` : "one value";
  const text = `rows ${data.names[rank - 2]}, columns ${data.names[rank - 1]}`;
  return rank === 2 ? text : `${text}, a matrix for each ${data.names.slice(0, -2).join(" ")}`;
}

function buildMatrix(side, name, first) {
  const header = (scope, text) => make("th", { scope }, String(text));
  const table = make("table", { role: "grid", "aria-label": `${SIDES[side]}${name && `, ${name}`}` });
  const corner = rank > 1 ? [header("col", data.names.slice(-2).join("\\"))] : [];
  const heads = Array.from({ length: columns }, (_, column) => header("col", data.columns ? data.columns[column] : data.start[rank - 1] + column));
  if (rank) table.append(make("thead", {}, make("tr", {}, ...corner, ...heads)));
  const body = make("tbody");
  for (let row = 0; row < rows; row++) {
    const line = make("tr", {}, ...(rank > 1 ? [header("row", data.start[rank - 2] + row)] : []));
    for (let column = 0; column < columns; column++) {
      const cell = first + row * columns + column;
      line.append((cells[side][cell] = make("td", { tabindex: "-1", "data-cell": cell })));
    }
    body.append(line);
  }
  table.append(body);
  return make("div", { class: `side-${side}` }, make("p", { class: "side", "aria-hidden": "true" }, SIDES[side]), table);
}

/** Write what the chosen norm and eps make of every cell; the input is the same at every eps. */
function paint(sides = ["x", "y"]) {
  const result = current();
  state.values = computeAll(result);
  const shown = { x, y: state.values };
  for (const side of sides) {
    const formatCell = side === "y" && !isMoved() ? result.format : makeCellFormat(shown[side]);
    shown[side].forEach((value, cell) => {
      const group = result.owner[cell];
      const box = cells[side][cell];
      box.className = result.window ? "plain" : `c${result.numbers[group] % COLOURS}`;
      box.textContent = formatCell(value);
      box.dataset.value = formatExactly(value);
      box.dataset.group = result.numbers[group];
      if (result.window) delete box.dataset.group;
      const owner = result.window ? "" : `, group ${result.groups[group]}`;
      box.setAttribute("aria-label", `${SIDES[side]} ${format(value)}, ${nameCell(cell)}${owner}`);
    });
    alignColumns(side);
  }
  const longest = result.window ? 1 : Math.max(1, ...result.numbers.map((number) => String(number).length));
  find("tensor").style.setProperty("--tag", longest);
  light();
  showEps();
  showGroups();
}

/** Make the columns of all matrices of a side as wide as its longest text. */
function alignColumns(side) {
  const longest = cells[side].reduce((most, box) => Math.max(most, box.textContent.length), 0);
  for (const part of document.querySelectorAll(`.side-${side}`)) part.style.setProperty("--characters", longest);
}

/** Light the group (or window) of the cell that is pointed at, or else of the one selected. */
function light() {
  const result = current();
  const cell = state.hovered ?? state.selected;
  for (const element of document.querySelectorAll(".lit, .chosen")) element.classList.remove("lit", "chosen");
  find("tensor").classList.toggle("dimmed", cell !== null);
  if (cell !== null) {
    const group = result.owner[cell];
    for (const side of ["x", "y"]) {
      for (const member of result.members[group]) cells[side][member].classList.add("lit");
      cells[side][cell].classList.add("chosen");
    }
    document.querySelector(`#groups tr[data-group="${result.numbers[group]}"]`)?.classList.add("lit");
  }
  showStory(cell);
}

// -- the story

const HINT = "Point at a value, tap it or move to it with the arrow keys: its group lights up, and its way from x to y is shown here.";

function showStory(cell) {
  const story = find("story");
  const result = current();
  story.replaceChildren(make("p", { class: "formula" }, `y = ${result.formula}`));
  if (cell === null) {
    story.append(make("p", { class: "hint" }, x.length ? HINT : ""));
    return;
  }
  const group = result.owner[cell];
  const ofGroup = workGroup(result, group);
  const ofValue = workValue(result, cell, ofGroup.scope.values);
  const { n } = ofGroup.scope.values;
  const here = result.members[group].length;
  const part = here < n ? `, ${here} of them shown; the statistics are of all ${count(n)}` : "";
  const title = result.groupCount === 1 ? "The only group" : `${result.window ? "Window of" : "Group"} ${result.groups[group]}`;
  story.append(
    make("p", { class: "way" }, make("small", {}, nameCell(cell)), `${format(x[cell])} → ${format(state.values[cell])}`),
    drawWay(result, cell) ?? "",
    make("h2", {}, ...(result.window ? [] : [makeBadge(result.numbers[group])]), title),
    make("p", { class: "count" }, `n = ${count(n)} value${n === 1 ? "" : "s"}${part}`),
    makeSteps(ofGroup),
    make("h2", {}, "The value"),
    makeSteps(ofValue),
  );
}

const makeBadge = (number) => make("span", { class: `badge c${number % COLOURS}` }, String(number));

function makeSteps({ steps, scope }) {
  const list = make("dl");
  for (const step of steps) {
    const { name, means, links } = formatStep(step, scope);
    const [sign, text] = links.pop();
    const value = make("strong", { class: "is", "data-value": formatExactly(step.result), "data-key": name }, text);
    const detail = make("dd");
    if (means) detail.append(make("span", { class: "means" }, `= ${means}`), " ");
    for (const link of links) detail.append(make("span", { class: "by" }, link.join(" ")), " ");
    detail.append(make("span", { class: "end" }, `${sign} `, value));
    list.append(make("div", {}, make("dt", {}, name), detail));
  }
  return list;
}

const MOST_PATHS = 256;

/** The group on two lines of one scale: where its values lie as x, and where they come to lie as y. */
function drawWay(result, cell) {
  const group = result.owner[cell];
  const members = result.members[group].slice(0, MOST_PATHS);
  const centre = result.centre && result.statistics[result.centre][group];
  const ends = [0, ...[cell, ...members].flatMap((member) => [x[member], state.values[member]])];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  if (!Number.isFinite(high - low) || high === low) return null;
  const [left, right, top, bottom] = [22, 338, 26, 84];
  const scale = (value) => left + ((value - low) / (high - low)) * (right - left);
  const label = `The values of the group on a line as x, and below it as y: ${format(x[cell])} goes to ${format(state.values[cell])}`;
  const colour = result.window ? "" : `c${result.numbers[group] % COLOURS}`;
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const draw = (tag, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(text);
    picture.append(element);
  };
  const attributes = { id: "way", viewBox: "0 0 360 106", role: "img", "aria-label": label, class: colour };
  for (const [name, value] of Object.entries(attributes)) picture.setAttribute(name, value);
  for (const [name, y] of [["x", top], ["y", bottom]]) {
    draw("line", { class: "axis", x1: left, x2: right, y1: y, y2: y });
    draw("text", { x: 4, y: y + 4 }, name);
  }
  const mark = (value, y, text, textY) => {
    const at = scale(value);
    draw("line", { class: "axis", x1: at, x2: at, y1: y - 7, y2: y + 7 });
    draw("text", { x: at, y: textY, "text-anchor": at < 60 ? "start" : at > 300 ? "end" : "middle" }, text);
  };
  if (result.centre) mark(centre, top, result.centre, top - 12);
  mark(0, bottom, "0", bottom + 20);
  const path = (member, kind) =>
    draw("line", { class: `path${kind}`, x1: scale(x[member]), x2: scale(state.values[member]), y1: top, y2: bottom });
  const dots = (member, kind, r) => {
    draw("circle", { class: `dot${kind}`, cx: scale(x[member]), cy: top, r });
    draw("circle", { class: `dot${kind}`, cx: scale(state.values[member]), cy: bottom, r });
  };
  for (const member of members) path(member, "");
  path(cell, " own");
  for (const member of members) dots(member, "", 3.2);
  dots(cell, " own", 5);
  return picture;
}

// -- the groups

const MOST_GROUPS = 24;

/** The groups with their statistics: what the colours mean. */
function showGroups() {
  const result = current();
  const section = find("groups");
  find("facts").textContent = [...(results.length > 1 ? [result.title] : []), ...result.facts].join(" · ");
  section.replaceChildren(...result.warnings.map((warning) => make("p", { class: "warning" }, `Note: ${warning}`)));
  if (result.window || !x.length) return;
  const names = Object.keys(result.statistics);
  const head = ["group", "count", ...names].map((name) => make("th", { scope: "col" }, name));
  const lines = result.groups.slice(0, MOST_GROUPS).map((name, group) => {
    const number = result.numbers[group];
    const row = make("tr", { "data-group": number }, make("th", { scope: "row" }, makeBadge(number), ` ${name}`), make("td", {}, count(result.counts[group])));
    for (const statistic of names) {
      const value = result.statistics[statistic][group];
      row.append(make("td", { "data-value": formatExactly(value), "data-statistic": statistic }, format(value)));
    }
    return row;
  });
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
  section.append(
    make("h2", {}, "Groups"),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Statistics of the groups" }, table),
  );
  const hidden = result.groupCount - lines.length;
  const notes = hidden ? [`${count(hidden)} of ${count(result.groupCount)} groups are not listed.`] : [];
  if (data.slice) notes.push("The statistics are of the whole groups, of which this page shows a part.");
  if (notes.push(...result.notes)) section.append(make("p", { class: "note" }, notes.join(" ")));
}

// -- eps

const [LOWEST, HIGHEST, POSITIONS_PER_DECADE] = [-16, 181, 10];
const toEps = (position) =>
  position === 0 ? 0 : Number((10 ** (LOWEST + (position - 1) / POSITIONS_PER_DECADE)).toPrecision(3));
const toPosition = (eps) =>
  eps === 0 ? 0 : Math.min(HIGHEST, Math.max(1, Math.round((Math.log10(eps) - LOWEST) * POSITIONS_PER_DECADE) + 1));

/** Set the controls to the eps of the norm that is shown, and say whose numbers these are. */
function showEps() {
  const result = current();
  const eps = currentEps();
  const [slider, number, status] = [find("eps-slider"), find("eps-number"), find("exactness")];
  const hasEps = eps !== null;
  slider.disabled = number.disabled = !hasEps;
  find("epsilon").classList.toggle("absent", !hasEps);
  find("reset").disabled = !isMoved();
  find("eps-mode").textContent = hasEps ? result.epsPlace : "this norm has none";
  if (hasEps) {
    slider.value = toPosition(eps);
    slider.setAttribute("aria-valuetext", formatExactly(eps));
    if (number.value === "" || Number(number.value) !== eps) number.value = String(eps);
    number.removeAttribute("aria-invalid");
  } else {
    number.value = "";
  }
  status.classList.toggle("moved", isMoved());
  const unrounded = result.rounding ? ` and not rounded to ${result.dtype}` : "";
  const rounded = result.rounding ? `, rounded ${result.rounding} to ${result.dtype}` : "";
  const text = isMoved()
    ? `Moved: at eps = ${format(eps)} the page computes x̂ and y itself, in double precision${unrounded}; Reset brings back normcli's exact numbers at eps = ${format(result.eps)}.`
    : `Exact: these are normcli's own numbers${hasEps ? `, at eps = ${format(eps)}` : ""}${rounded}.`;
  if (status.textContent !== text) status.textContent = text;
}

function moveEps(eps) {
  state.eps[state.shown] = eps;
  paint(["y"]);
  announce();
}

// -- moving about

function select(cell, side = state.side, { focus = true } = {}) {
  for (const box of document.querySelectorAll('#tensor td[aria-selected="true"]')) box.removeAttribute("aria-selected");
  Object.assign(state, { selected: cell, side });
  if (cell !== null) {
    const box = cells[side][cell];
    setTabStop(box);
    box.setAttribute("aria-selected", "true");
    if (focus && document.activeElement !== box) box.focus();
  } else {
    find("said").textContent = "Nothing is selected.";
  }
  announce();
  light();
}

/** One cell alone can be tabbed to: the last that was at work. */
function setTabStop(box) {
  for (const other of document.querySelectorAll('#tensor td[tabindex="0"]')) other.tabIndex = -1;
  box.tabIndex = 0;
}

/** Have a screen reader read out what is selected. */
function announce() {
  const { selected: cell, values } = state;
  if (cell === null) return;
  const result = current();
  const group = result.owner[cell];
  const n = `${result.counts[group]} values`;
  const owner = result.window ? `window of ${n}` : `group ${result.groups[group]}, ${n}`;
  const centre = result.centre ? `, ${result.centre} ${format(result.statistics[result.centre][group], 5)}` : "";
  find("said").textContent = `${nameCell(cell)}: input ${format(x[cell], 5)}, normalized ${format(values[cell], 5)}, ${owner}${centre}.`;
}

const isShown = (side) => !find("tensor").classList.contains(side === "x" ? "only-y" : "only-x");

/** Where each key leads from a cell, its row, its column and its side: to a cell and a side, or nowhere (null). */
const KEYS = {
  ArrowRight: (cell, row, column, side) =>
    column < columns - 1 ? [cell + 1, side] : !isStacked && side === "x" && isShown("y") ? [cell - column, "y"] : null,
  ArrowLeft: (cell, row, column, side) =>
    column > 0 ? [cell - 1, side] : !isStacked && side === "y" && isShown("x") ? [cell + columns - 1, "x"] : null,
  ArrowDown: (cell, row, column, side) =>
    row < rows - 1 ? [cell + columns, side] : isStacked && side === "x" && isShown("y") ? [cell - row * columns, "y"] : null,
  ArrowUp: (cell, row, column, side) =>
    row > 0 ? [cell - columns, side] : isStacked && side === "y" && isShown("x") ? [cell + (rows - 1) * columns, "x"] : null,
  Home: (cell, row, column, side) => [cell - column, side],
  End: (cell, row, column, side) => [cell - column + columns - 1, side],
  PageDown: (cell, row, column, side) => (cell + rows * columns < x.length ? [cell + rows * columns, side] : null),
  PageUp: (cell, row, column, side) => (cell >= rows * columns ? [cell - rows * columns, side] : null),
};

function hover(cell) {
  if (cell === state.hovered) return;
  state.hovered = cell;
  light();
}

function listen() {
  const tensor = find("tensor");
  const onCell = (type, act) =>
    tensor.addEventListener(type, (event) => {
      const box = event.target.closest("td[data-cell]");
      act(event, box ? Number(box.dataset.cell) : null, box?.closest(".side-x") ? "x" : "y");
    });
  onCell("pointerover", (event, cell) => event.pointerType !== "touch" && hover(cell));
  tensor.addEventListener("pointerleave", () => hover(null));
  onCell("click", (event, cell, side) => cell !== null && select(cell, side));
  onCell("focusin", (event, cell, side) => {
    if (cell !== null && (cell !== state.selected || side !== state.side)) select(cell, side, { focus: false });
  });
  onCell("keydown", (event, cell, side) => {
    if (cell === null || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    state.hovered = null;
    const next = KEYS[event.key](cell, Math.trunc(cell / columns) % rows, cell % columns, side);
    if (next) select(...next);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    state.hovered = null;
    select(null);
  });
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  find("eps-slider").addEventListener("input", (event) => moveEps(toEps(Number(event.target.value))));
  find("eps-number").addEventListener("input", (event) => {
    const eps = event.target.value === "" ? NaN : Number(event.target.value);
    if (eps >= 0 && Number.isFinite(eps)) moveEps(eps);
    else event.target.setAttribute("aria-invalid", "true");
  });
  find("eps-number").addEventListener("change", showEps);
  find("reset").addEventListener("click", () => {
    moveEps(current().eps);
    find("eps-slider").focus();
  });
}

/** A row of radio buttons that looks like a switch; the first of [label, value, title] is chosen. */
function buildChoice(fieldset, name, choices, act) {
  choices.forEach(([label, value, title], number) => {
    const input = make("input", { type: "radio", name, value });
    input.checked = number === 0;
    input.addEventListener("change", () => act(value));
    fieldset.append(make("label", title ? { title } : {}, input, make("span", {}, label)));
  });
}

function buildControls() {
  find("norms").hidden = results.length === 1;
  buildChoice(find("norms"), "norm", results.map((result, number) => [result.label, number, result.title]), (number) => {
    state.shown = number;
    paint();
    announce();
  });
  buildChoice(find("views"), "view", [["both", "both"], ["input", "x"], ["normalized", "y"]], (view) => {
    for (const side of ["x", "y"]) find("tensor").classList.toggle(`only-${side}`, view === side);
    if (!isShown(state.side)) state.side = view;
    if (x.length) setTabStop(cells[state.side][state.selected ?? 0]);
  });
}

find("source").textContent = `${data.source} · ${data.shapeText} · ${data.dtype}`;
if (data.slice) {
  find("slice").hidden = false;
  find("slice").textContent = `A part of the tensor: ${data.slice}. Statistics are those of the whole groups.`;
}
buildTensor();
buildControls();
listen();
if (x.length) setTabStop(cells.x[0]);
paint();
if (data.at) {
  const cell = data.at.reduce((sum, position, axis) => sum + (position - data.start[axis]) * strides[axis], 0);
  select(cell, "x", { focus: false });
}
