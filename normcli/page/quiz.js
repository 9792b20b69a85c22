// Questions on this tensor, made of its numbers and answered by them.

const MOST_QUESTIONS = 5;

/** How often other questions were asked for: each time they are of other values. */
let turn = 0;

/** Rounding of y, relative: what is no further apart is the same to a reader. */
const SAME = { float64: 1e-9, float32: 1e-6, float16: 4e-3, bfloat16: 3e-2 };

/** The words of each direction in which y may go. */
const WAYS = { rises: say("it rises"), falls: say("it falls"), stays: say("it stays") };

/** A question of what becomes of y at a cell where some of x are other values: y is recalculated, and x put back. */
function askChange(result, cell, text, changes) {
  const read = () => workValue(result, cell, workGroup(result, result.owner[cell])).scope.values.y;
  const [before, kept] = [read(), changes.map(([other]) => x[other])];
  for (const [other, value] of changes) x[other] = value;
  const after = read();
  changes.forEach(([other], n) => (x[other] = kept[n]));
  const least = (SAME[result.dtype] ?? 0) * Math.max(1, Math.abs(before));
  const [from, to] = [before, after].map((value) => format(value, data.cellDigits));
  const way = after - before > least ? "rises" : before - after > least ? "falls" : "stays";
  return {
    text: `${text} ${say("What becomes of y at {0}?", nameCell(cell))}`,
    options: Object.entries(WAYS).map(([name, words]) => [words, name === way]),
    answer: way === "stays" ? say("y at {0} stays {1}.", nameCell(cell), from) : say("y at {0} goes from {1} to {2}.", nameCell(cell), from, to),
  };
}

/** Whether y can be told at a cell, which is not alone in its group, and changes where x doubles. */
const isFit = (result, cell) =>
  Number.isFinite(x[cell]) && x[cell] !== 0 && Number.isFinite(numbers.y[cell]) && result.members[result.owner[cell]].length > 1;

/** Yield questions on a cell of the norm that is shown. */
function* listQuestions(result) {
  const order = x.map((_, n) => (n + turn * (columns + 1)) % x.length);
  const cell = order.find((other) => isFit(result, other));
  const picture = askPicture(result);
  if (cell === undefined) {
    if (picture) yield picture;
    return;
  }
  const [name, value] = [nameCell(cell), format(x[cell], data.cellDigits)];
  const members = result.members[result.owner[cell]];
  const others = order.filter((other) => !members.includes(other)).reverse();
  const rest = members.filter((other) => other !== cell);
  const mate = rest[(turn + Math.trunc(rest.length / 2)) % rest.length];
  const [statistic] = Object.keys(result.statistics);
  const known = format(numbers.groups[result.owner[cell]].scope.values[statistic], data.cellDigits);
  if (others.length && !result.window) {
    yield {
      text: say("{0} has {1} {2}. Which value shares it?", name, nameBoth(statistic), known),
      options: [mate, ...others.slice(0, 2)].sort((a, b) => a - b).map((other) => [nameCell(other), other === mate]),
      answer: say("{0} and {1} are in group {2}, of {3}.", name, nameCell(mate), result.groups[result.owner[cell]], sayValues(result.counts[result.owner[cell]])),
    };
  }
  const factor = turn % 2 ? 0.5 : 2;
  const scaled = format(factor * x[cell], data.cellDigits);
  const scaling = turn % 2 ? say("x at {0} halves, from {1} to {2}.", name, value, scaled) : say("x at {0} doubles, from {1} to {2}.", name, value, scaled);
  if (canEdit) yield askChange(result, cell, scaling, [[cell, factor * x[cell]]]);
  if (picture) yield picture;
  // Of the cells in no group with this one, one of another sample and otherwise of the same place: does the batch matter?
  const far = order.find((other) => place(other).every((at, axis) => (axis ? at === place(cell)[axis] : at !== place(cell)[axis]))) ?? others[0];
  const more = margin * 4;
  if (canEdit && far !== undefined) {
    const text = say("x at {0} becomes {1} larger.", nameCell(far), format(more, 2));
    yield askChange(result, cell, text, [[far, x[far] + more]]);
  }
  if (canEdit && !result.window) {
    const group = result.groups[result.owner[cell]];
    const [added, moved] = [[10, members], [10, rest], [-10, rest]][turn % 3];
    const text =
      moved === members
        ? say("{0} is added to every x of group {1}.", added, group)
        : say("{0} is added to every x of group {1} but that at {2}.", format(added), group, name);
    yield askChange(result, cell, text, moved.map((other) => [other, x[other] + added]));
  }
  if (canEdit) yield askChange(result, mate, scaling, [[cell, factor * x[cell]]]);
  yield askCount(result, statistic);
}

function askCount(result, statistic) {
  const counts = [result.groupCount, result.counts[0], data.shape.reduce((a, b) => a * b, 1)];
  return {
    text: say("How many groups are there, each with a {0} of its own?", nameBoth(statistic)),
    options: [...new Set(counts)].sort((a, b) => a - b).map((number) => [count(number), number === result.groupCount]),
    answer: result.facts.join(" · "),
  };
}

/** The groups of cells, numbered as they come: equal where the same cells are together. */
function orderGroups(owner) {
  const seen = new Map();
  return owner.map((group) => seen.get(group) ?? seen.set(group, seen.size).get(group)).join();
}

/** Which norm has these groups: of those that part the tensor otherwise, each in turn; what the page shows comes last. */
function askPicture(result) {
  const blocks = find("blocks").firstElementChild;
  if (data.known.length < 2 || blocks === null) return null;
  const shown = orderGroups(result.owner);
  const isShown = (norm) => orderGroups(readOwners(norm.owner)) === shown;
  const inTurn = [...data.known.filter((norm) => !isShown(norm)), ...data.known.filter(isShown)];
  const chosen = inTurn[turn % inTurn.length];
  const owner = readOwners(chosen.owner);
  const picture = make("figure", { class: "blocks" }, blocks.cloneNode(true));
  paintBlocks(picture, (cell) => `c${owner[cell] % COLOURS}`);
  return {
    text: say("Which norm has these groups?"),
    picture,
    options: data.known.map((norm) => [norm.title, norm === chosen]),
    answer: `${chosen.title}: ${chosen.facts.join(" · ")}`,
  };
}

function buildQuiz() {
  const asked = x.length ? [...listQuestions(current())].slice(0, MOST_QUESTIONS) : [];
  find("quiz").hidden = !asked.length;
  find("questions").replaceChildren(...asked.map(buildQuestion));
}

function buildQuestion({ text, picture, options, answer }) {
  const told = make("p", { class: "told", role: "status" });
  const buttons = options.map(([label, isRight]) => {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      button.classList.add(isRight ? "right" : "wrong");
      told.textContent = `${isRight ? say("Yes.") : say("No.")} ${answer}`;
    });
    return button;
  });
  return make("div", { class: "question" }, make("p", {}, text), ...(picture ? [picture] : []), make("div", { class: "switch" }, ...buttons), told);
}
