// The words: the formula, the steps, the arithmetic of the value that is pointed at, the groups.

const HINT = "Point at a value, tap it or move to it with the arrow keys: its group lights up, and its way from x to y is told here.";

/** The formula, the part of the step that is shown lit. */
function showFormula() {
  const result = current();
  const pieces = hasNewParameters(result) ? result.movedFormula : result.formula;
  const { name } = result.steps[stepNumber()];
  find("formula").replaceChildren(
    "y = ",
    ...pieces.map(([text, steps]) => make("span", steps.includes(name) ? { class: "part now" } : { class: "part" }, text)),
  );
  find("facts").textContent = [...(results.length > 1 ? [result.title] : []), ...result.facts].join(" · ");
}

/** The arithmetic of a cell, or of a group alone; without either, what to do. */
function showStory({ cell, group }, { groups, y }) {
  const result = current();
  const story = find("arithmetic");
  if (group === null) {
    find("chosen").textContent = "The arithmetic";
    story.replaceChildren(make("p", { class: "hint" }, x.length ? HINT : ""));
    return;
  }
  const ofGroup = groups[group];
  const { n } = ofGroup.scope.values;
  const here = result.members[group].length;
  const part = here < n ? `, ${here} of them shown; the statistics are of all ${count(n)}` : "";
  const title = result.groupCount === 1 ? "The only group" : `${result.window ? "Window of" : "Group"} ${result.groups[group]}`;
  find("chosen").textContent = cell === null ? title : `${nameCell(cell)}: ${format(x[cell])} → ${format(y[cell])}`;
  story.replaceChildren(
    make("h3", {}, ...(result.window ? [] : [makeBadge(result.numbers[group])]), title),
    make("p", { class: "count" }, `n = ${count(n)} value${n === 1 ? "" : "s"}${part}`),
    makeSteps(ofGroup),
  );
  if (cell !== null) story.append(make("h3", {}, "The value"), makeSteps(workValue(result, cell, ofGroup)));
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

// -- the groups

const MOST_GROUPS = 24;

/** The groups with their statistics, those of the step marked: what the colours mean. */
function showGroups({ groups }) {
  const result = current();
  const section = find("groups");
  section.replaceChildren(...result.warnings.map((warning) => make("p", { class: "warning" }, `Note: ${warning}`)));
  if (result.window || !x.length) return;
  const names = Object.keys(result.statistics);
  const { marks } = result.steps[stepNumber()];
  const mark = (name) => (marks.includes(name) ? { class: "now" } : {});
  const head = ["group", "n", ...names].map((name) => make("th", { scope: "col", ...mark(name) }, name));
  const lines = result.groups.slice(0, MOST_GROUPS).map((name, group) => {
    const number = result.numbers[group];
    const label = make("th", { scope: "row" }, makeBadge(number), ` ${name}`);
    const row = make("tr", { "data-group": group }, label, make("td", {}, count(result.counts[group])));
    for (const statistic of names) {
      const value = groups[group].scope.values[statistic];
      row.append(make("td", { "data-value": formatExactly(value), "data-statistic": statistic, ...mark(statistic) }, format(value, data.cellDigits)));
    }
    return row;
  });
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
  section.append(make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Statistics of the groups" }, table));
  const hidden = result.groupCount - lines.length;
  const notes = hidden ? [`${count(hidden)} of ${count(result.groupCount)} groups are not listed.`] : [];
  if (data.slice) notes.push("The statistics are of the whole groups, of which this page shows a part.");
  if (notes.length) section.append(make("p", { class: "note" }, notes.join(" ")));
}

/** Say whose numbers these are. */
function showExactness() {
  const result = current();
  const moved = listMoved(result);
  const status = find("exactness");
  const unrounded = result.rounding ? ` and not rounded to ${result.dtype}` : "";
  const rounded = result.rounding ? `, rounded ${result.rounding} to ${result.dtype}` : "";
  const text = moved.length
    ? `Recalculated in the browser, in double precision${unrounded}: ${moved.join(", ")}. Reset brings back normcli's exact numbers.`
    : `Exact: these are normcli's own numbers${rounded}.`;
  status.classList.toggle("moved", moved.length > 0);
  if (status.textContent !== text) status.textContent = text;
  find("reset").disabled = !moved.length;
}

/** Have a screen reader read out what is selected. */
function announce({ y, groups }) {
  const cell = state.selected;
  if (cell === null) return;
  const result = current();
  const group = result.owner[cell];
  const n = `${result.counts[group]} value${result.counts[group] === 1 ? "" : "s"}`;
  const owner = result.window ? `window of ${n}` : `group ${result.groups[group]}, ${n}`;
  const centre = result.centre ? `, ${result.centre} ${format(groups[group].scope.values[result.centre], 5)}` : "";
  find("said").textContent = `${nameCell(cell)}: input ${format(x[cell], 5)}, normalized ${format(y[cell], 5)}, ${owner}${centre}.`;
}
