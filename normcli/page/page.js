// The page itself: what is shown when, and what the reader does.

let numbers = null;

/** Show everything anew: the norm, the step, the numbers. */
function paint() {
  const result = current();
  const step = result.steps[stepNumber()];
  numbers = calculate(result, step);
  if (!listSides().includes(state.side)) state.side = "x";
  const paintCells = () => {
    if (x.length) paintTensor(numbers, step.head);
    paintBadges();
  };
  paintCells();
  if (stackIfTooWide()) {
    paintCells();
    setTabStop(cells.x[0]);
  }
  find("tensor").classList.toggle("later", stepNumber() < result.steps.length - 1);
  find("tensor").classList.toggle("first", stepNumber() === 0);
  for (const [id, shown] of [["blocks", result], ["beside", findBeside()]]) {
    if (shown) paintBlocks(find(id), (cell) => colour(shown, shown.owner[cell]));
  }
  showFormula();
  showGroups(numbers);
  showExactness();
  showKnobs();
  showSteps();
  drawHistograms(result, numbers);
  light();
  cueScrolling();
  keepLink();
}

/** The cell and the group that are pointed at, or else selected: each a number, or null. */
function findLit() {
  if (state.pointed?.group !== undefined) return { cell: null, group: state.pointed.group };
  const cell = state.pointed?.cell ?? state.selected;
  return { cell, group: cell === null ? null : current().owner[cell] };
}

/** Light what is pointed at or selected; where nothing is, the arithmetic is that of the first value. */
function light() {
  const lit = findLit();
  const result = current();
  const told = lit.group === null && x.length ? { cell: 0, group: result.owner[0] } : lit;
  lightCells(lit.group, told.cell);
  if (lit.group !== null) document.querySelector(`#groups tr[data-group="${lit.group}"]`)?.classList.add("lit");
  lightHistograms(result, lit.group);
  showStory(told, numbers);
}

function point(pointed) {
  if (pointed?.cell === state.pointed?.cell && pointed?.group === state.pointed?.group) return;
  state.pointed = pointed;
  light();
}

function select(cell, side = state.side, { focus = true } = {}) {
  for (const box of document.querySelectorAll('#tensor td[aria-selected="true"]')) box.removeAttribute("aria-selected");
  Object.assign(state, { selected: cell, side });
  if (cell !== null) {
    const box = cells[side][cell];
    setTabStop(box);
    box.setAttribute("aria-selected", "true");
    if (focus && document.activeElement !== box) box.focus();
  } else {
    find("said").textContent = say("Nothing is selected.");
  }
  announce(numbers);
  showKnobs();
  light();
  keepLink();
}

/** One cell alone can be tabbed to: the last that was at work. */
function setTabStop(box) {
  for (const other of document.querySelectorAll('#tensor td[tabindex="0"]')) other.tabIndex = -1;
  box.tabIndex = 0;
}

// -- norms and steps

/** A row of radio buttons that looks like a switch. */
function buildChoice(box, name, choices, chosen, act) {
  const labels = choices.map(([label, title], number) => {
    const input = make("input", { type: "radio", name, value: number });
    input.checked = number === chosen;
    input.addEventListener("change", () => act(number));
    return make("label", title ? { title } : {}, input, make("span", {}, label));
  });
  box.replaceChildren(...labels);
}

function showNorm(number) {
  const before = current().steps[stepNumber()].name;
  const wasLast = stepNumber() === current().steps.length - 1;
  [state.beside, state.shown] = [state.shown, number];
  const same = current().steps.findIndex((step) => step.name === before);
  state.step = wasLast || same < 0 ? Infinity : same;
  buildSteps();
  paint();
  buildQuiz();
  announce(numbers);
}

function buildSteps() {
  buildChoice(find("chain"), "step", current().steps.map((step) => [say(step.name)]), stepNumber(), showStep);
}

function showStep(number) {
  state.step = number;
  paint();
  const { name, head } = current().steps[stepNumber()];
  find("said").textContent = say("Step {0} of {1}, {2}: {3}", stepNumber() + 1, current().steps.length, say(name), say(head));
}

function showSteps() {
  const last = current().steps.length - 1;
  find("back").disabled = stepNumber() === 0;
  find("forward").disabled = stepNumber() === last;
  for (const input of find("chain").querySelectorAll("input")) input.checked = Number(input.value) === stepNumber();
}

function goOn(by) {
  const next = stepNumber() + by;
  if (next >= 0 && next < current().steps.length) showStep(next);
}

// -- listening

/** What an element stands for: a cell, a group, or nothing. */
function findMeant(element) {
  const box = element.closest("[data-cell], [data-group]");
  if (box === null) return null;
  return box.dataset.cell === undefined ? { group: Number(box.dataset.group) } : { cell: Number(box.dataset.cell) };
}

/** Lead from a cell to the number in which it can be changed. */
function edit() {
  if (find("knob-x").hidden || state.selected === null) return;
  find("x-number").focus();
  find("x-number").select();
}

function listen() {
  find("stage").addEventListener("pointerover", (event) => event.pointerType !== "touch" && point(findMeant(event.target)));
  find("stage").addEventListener("pointerleave", () => point(null));
  for (const id of ["blocks", "groups", "plot"]) {
    find(id).addEventListener("click", (event) => {
      const meant = findMeant(event.target);
      if (meant !== null) select(meant.cell ?? current().members[meant.group][0], "x", { focus: false });
    });
  }
  const onCell = (type, act) =>
    find("tensor").addEventListener(type, (event) => {
      const box = event.target.closest("td[data-cell]");
      if (box !== null) act(event, Number(box.dataset.cell), Object.keys(SIDES).find((side) => box.closest(`.side-${side}`)));
    });
  onCell("click", (event, cell, side) => select(cell, side));
  onCell("dblclick", edit);
  onCell("focusin", (event, cell, side) => {
    if (cell !== state.selected || side !== state.side) select(cell, side, { focus: false });
  });
  onCell("keydown", (event, cell, side) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === "F2" || (side === "x" && /^[-.\d]$/.test(event.key))) {
      if (event.key.length > 1) event.preventDefault();
      edit();
    }
    if (!Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    state.pointed = null;
    const next = KEYS[event.key](cell, Math.trunc(cell / columns) % rows, cell % columns, side);
    if (next) select(...next);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      state.pointed = null;
      select(null);
    }
    const isFree = !event.target.closest("input, td, [tabindex]") && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (isFree && event.key === "ArrowRight") goOn(1);
    if (isFree && event.key === "ArrowLeft") goOn(-1);
  });
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
  find("back").addEventListener("click", () => goOn(-1));
  find("forward").addEventListener("click", () => goOn(1));
  find("x-number").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && state.selected !== null) cells[state.side][state.selected].focus();
  });
  listenToKnobs(() => {
    paint();
    buildQuiz();
    announce(numbers);
  });
  find("reset").addEventListener("click", () => {
    resetAll();
    paint();
    buildQuiz();
    announce(numbers);
    find("back").focus();
  });
  find("fold").addEventListener("click", () => {
    const isFolded = find("story").classList.toggle("folded");
    find("fold").setAttribute("aria-expanded", String(!isFolded));
    find("fold").textContent = isFolded ? say("Show") : say("Hide");
  });
  document.addEventListener("scroll", cueScrolling, { capture: true, passive: true });
  addEventListener("resize", cueScrolling);
  wide.addEventListener("change", () => {
    isStacked = isWide;
    buildTensor();
    paint();
    if (x.length) setTabStop(cells[state.side][state.selected ?? 0]);
  });
  find("others").addEventListener("click", () => buildQuiz((turn += 1)));
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) !== written) open(location.hash);
  });
}

/** Show the state of an address. */
function open(address) {
  readLink(address);
  find("norms").hidden = results.length === 1;
  buildChoice(find("row"), "norm", results.map((result) => [result.label, result.title]), state.shown, showNorm);
  buildSteps();
  paint();
  buildQuiz();
  if (state.selected !== null) select(state.selected, "x", { focus: false });
}

find("source").textContent = `${data.source} · ${data.shapeText} · ${data.dtype}`;
if (data.slice) {
  find("slice").hidden = false;
  find("slice").textContent = say("A part of the tensor: {0}. Statistics are those of the whole groups.", data.slice);
}
if (results.length > 1) find("beside").append(...find("blocks").cloneNode(true).childNodes);
buildTensor();
listen();
if (x.length) setTabStop(cells.x[0]);
open(location.hash || (data.at ? `#at=${data.at.join(",")}` : ""));
// Colours fade when they change, and not when the page opens.
requestAnimationFrame(() => requestAnimationFrame(() => document.body.classList.add("open")));
