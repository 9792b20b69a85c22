// The matrices: of each index of all axes but the last two, the input, what the step shows, and y.

const COLOURS = 8;
const SIDES = { x: say("input"), z: say("step"), y: say("normalized"), ...(results.length > 1 ? { o: say("beside") } : {}) };
const cells = { x: [], z: [], y: [], o: [] };

/** The sides that are seen: the first step is the input itself, and another norm needs a wide window. */
const listSides = () =>
  Object.keys(SIDES).filter((side) => (side !== "z" || stepNumber() > 0) && (side !== "o" || findBeside() !== null));

/** Wide matrices stand one above the other, unless they are long: then they are scrolled. */
const [WIDE, LONG] = [6, 12];
const isWide = columns > WIDE && rows <= LONG;
let isStacked = isWide;

// Transitions of thousands of cells would take a tenth of a second for each of them that is moved over.
const MOST_ANIMATED = 512;

/** Where the badge of a group stands: once where all of a matrix, a row or a column is of one group, or in its cells. */
function choosePlaces(result) {
  if (result.window) return "nowhere";
  const isAlike = (key) => {
    const owners = new Map();
    return result.owner.every((group, cell) => {
      const at = key(cell);
      if (!owners.has(at)) owners.set(at, group);
      return owners.get(at) === group;
    });
  };
  const matrix = (cell) => Math.trunc(cell / (rows * columns));
  if (isAlike(matrix)) return "matrix";
  if (isAlike((cell) => Math.trunc(cell / columns))) return "row";
  return isAlike((cell) => matrix(cell) * columns + (cell % columns)) ? "column" : "cell";
}

/** The heads of the columns: their names, or numbers. */
const columnHeads = data.columns ?? Array.from({ length: columns }, (_, column) => String((data.start[rank - 1] ?? 0) + column));

const badges = [];

/** An empty badge, for the group of a cell wherever groups are told so. */
function makeBadgeOf(kind, cell) {
  const box = make("span", { class: "badge", hidden: "", "aria-hidden": "true" });
  badges.push({ kind, cell, box });
  return box;
}

function buildTensor() {
  const section = find("tensor");
  section.replaceChildren();
  badges.length = 0;
  if (!x.length) {
    section.append(make("p", {}, say("The tensor holds no values.")));
    return;
  }
  section.classList.toggle("stacked", isStacked);
  section.classList.toggle("many", x.length > MOST_ANIMATED);
  for (let first = 0; first < x.length; first += rows * columns) {
    const name = nameIndex(index(first).slice(0, -2));
    const caption = make("figcaption", {}, makeBadgeOf("matrix", first), make("span", {}, name));
    const sides = Object.keys(SIDES).map((side) => buildMatrix(side, name, first));
    section.append(make("figure", { class: "matrix" }, caption, make("div", { class: "sides" }, ...sides)));
  }
}

function buildMatrix(side, name, first) {
  const header = (scope, ...texts) => make("th", { scope }, ...texts.map((text) => (typeof text === "number" ? String(text) : text)));
  const table = make("table", { role: "grid", "aria-label": `${SIDES[side]}${name && `, ${name}`}`, "data-name": name });
  const hasRows = rank > 1 && (side === "x" || isStacked);
  const corner = hasRows ? [header("col", make("span", { class: "corner" }, data.names.slice(-2).join("\\")))] : [];
  const heads = Array.from({ length: columns }, (_, column) =>
    header("col", makeBadgeOf("column", first + column), columnHeads[column]),
  );
  if (rank) table.append(make("thead", {}, make("tr", {}, ...corner, ...heads)));
  const body = make("tbody");
  for (let row = 0; row < rows; row++) {
    const start = first + row * columns;
    const line = make("tr", {}, ...(hasRows ? [header("row", makeBadgeOf("row", start), data.start[rank - 2] + row)] : []));
    for (let cell = start; cell < start + columns; cell++) line.append((cells[side][cell] = buildCell(side, cell)));
    body.append(line);
  }
  table.append(body);
  return make("div", { class: `side side-${side}` }, make("p", { class: "head", "aria-hidden": "true" }, SIDES[side]), table);
}

function buildCell(side, cell) {
  const number = make("span", { class: "number" });
  return make("td", { tabindex: "-1", "data-cell": cell }, ...(side === "x" ? [makeBadgeOf("cell", cell)] : []), number);
}

/** How wide a text is, in digits: of most fonts no minus is wider than this, and no point. */
const WIDTHS = { "−": 1.35, "∞": 1.35, ".": 0.5, "·": 0.5 };
const measureText = (text) => [...text].reduce((width, letter) => width + (WIDTHS[letter] ?? 1), 0);

/** Write the numbers of one side, and whose group each cell is; returned is the width of the widest. */
function paintSide(side, numbers, head, result = current()) {
  const formatCell = makeCellFormat(numbers);
  let widest = 0;
  numbers.forEach((value, cell) => {
    const box = cells[side][cell];
    const text = formatCell(value);
    widest = Math.max(widest, measureText(text));
    const number = box.lastChild;
    if (number.textContent !== text) number.textContent = text;
    box.className = colour(result, result.owner[cell]);
    box.classList.toggle("edited", side === "x" && isEdited(cell));
    box.dataset.value = formatExactly(value);
    const owner = result.window ? "" : `, ${say("group {0}", result.groups[result.owner[cell]])}`;
    box.setAttribute("aria-label", `${head} ${format(value)}, ${nameCell(cell)}${owner}`);
  });
  for (const part of document.querySelectorAll(`.side-${side}`)) {
    part.querySelector(".head").textContent = head;
    const { name } = part.querySelector("table").dataset;
    part.querySelector("table").setAttribute("aria-label", `${head}${name && `, ${name}`}`);
  }
  return widest;
}

/** Write all sides; what a step changes keeps its place, so the step's columns are as wide as those of y. */
function paintTensor(numbers, head) {
  const beside = findBeside();
  if (beside) {
    const { z, step } = calculate(beside, findStep(beside, current().steps[stepNumber()].name));
    paintSide("o", z, `${beside.label}: ${say(step.head)}`, beside);
  }
  const own = paintSide("x", numbers.x, say("input"));
  const widest = Math.max(paintSide("z", numbers.z, head), paintSide("y", numbers.y, "y"));
  const isSame = isStacked ? Math.max(own, widest) : own;
  find("tensor").style.setProperty("--number", widest);
  for (const part of document.querySelectorAll(".side-x")) part.style.setProperty("--number", isSame);
}

/** Matrices that are too wide for the screen are stacked too. */
function stackIfTooWide() {
  const section = find("tensor");
  if (isStacked || section.scrollWidth <= section.clientWidth + 2 || rows > LONG) return false;
  isStacked = true;
  buildTensor();
  return true;
}

/** Mark what can be scrolled to the right. */
function cueScrolling() {
  for (const box of document.querySelectorAll("#tensor, .scroll")) {
    box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  }
}

const colour = (result, group) => (result.window ? "plain" : `c${result.numbers[group] % COLOURS}`);

/** How much wider a badge makes the head of a column, in digits, beside those that it has. */
const BADGE_WIDTH = 2;

function paintBadges() {
  const result = current();
  const kind = choosePlaces(result);
  const badgeWidth = String(Math.max(...result.numbers)).length;
  const headWidth = Math.max(0, ...columnHeads.map(measureText)) + (kind === "column" ? BADGE_WIDTH + badgeWidth : 0);
  find("tensor").style.setProperty("--head", headWidth);
  find("tensor").style.setProperty("--badge", badgeWidth);
  for (const badge of badges) {
    badge.box.hidden = badge.kind !== kind;
    if (badge.box.hidden) continue;
    const group = result.owner[badge.cell];
    badge.box.className = `badge ${colour(result, group)}`;
    badge.box.textContent = result.numbers[group];
  }
}

/** Colour cubes as a result's cells are. */
function paintBlocks(figure, colourCell) {
  for (const block of figure.querySelectorAll("[data-cell]")) block.setAttribute("class", `cell ${colourCell(block.dataset.cell)}`);
}

/** Light a group in every view, and mark a cell: beside, the group of that cell there. Without a group, none is lit. */
function lightCells(group, cell) {
  for (const element of document.querySelectorAll(".lit, .chosen")) element.classList.remove("lit", "chosen");
  for (const id of ["tensor", "blocks", "beside"]) find(id).classList.toggle("dimmed", group !== null);
  const beside = findBeside();
  const there = beside && cell !== null ? beside.members[beside.owner[cell]] : null;
  const members = group === null ? [] : current().members[group];
  for (const side of listSides()) {
    for (const member of (side === "o" && group !== null && there) || members) cells[side][member].classList.add("lit");
    if (cell !== null) cells[side][cell].classList.add("chosen");
  }
  for (const [id, lit] of [["blocks", new Set(members)], ["beside", new Set((group !== null && there) || members)]]) {
    for (const block of find(id).querySelectorAll("[data-cell]")) {
      block.classList.toggle("lit", lit.has(Number(block.dataset.cell)));
      block.classList.toggle("chosen", Number(block.dataset.cell) === cell);
    }
  }
}

// -- moving about

const goBeside = (side, step) => listSides()[listSides().indexOf(side) + step];

/** To the cell beside, or to `other` of the side beside where the matrix ends; nowhere (null) where all end. */
const move = (isWithin, next, side, step, other) =>
  isWithin ? [next, side] : goBeside(side, step) ? [other, goBeside(side, step)] : null;

/** Where each key leads from a cell, its row, its column and its side: to a cell and a side, or nowhere (null). */
const KEYS = {
  ArrowRight: (cell, row, column, side) =>
    isStacked ? move(column < columns - 1, cell + 1, side, Infinity) : move(column < columns - 1, cell + 1, side, 1, cell - column),
  ArrowLeft: (cell, row, column, side) =>
    isStacked ? move(column > 0, cell - 1, side, Infinity) : move(column > 0, cell - 1, side, -1, cell - column + columns - 1),
  ArrowDown: (cell, row, column, side) =>
    move(row < rows - 1, cell + columns, side, isStacked ? 1 : Infinity, cell - row * columns),
  ArrowUp: (cell, row, column, side) =>
    move(row > 0, cell - columns, side, isStacked ? -1 : Infinity, cell + (rows - 1 - row) * columns),
  Home: (cell, row, column, side) => [cell - column, side],
  End: (cell, row, column, side) => [cell - column + columns - 1, side],
  PageDown: (cell, row, column, side) => (cell + rows * columns < x.length ? [cell + rows * columns, side] : null),
  PageUp: (cell, row, column, side) => (cell >= rows * columns ? [cell - rows * columns, side] : null),
};
