// The words: the formula, the steps, the arithmetic of the value that is pointed at, the groups.

/** The formula, the part of the step that is shown lit; gamma and beta are in it at their step, given or not. */
function showFormula() {
  const result = current();
  const { name } = result.steps[stepNumber()];
  const isTold = result.formula.some(([, steps]) => steps.includes(name));
  const pieces = hasNewParameters(result) || !isTold ? result.movedFormula : result.formula;
  find("formula").replaceChildren(
    "y = ",
    ...pieces.map(([text, steps]) => make("span", steps.includes(name) ? { class: "part now" } : { class: "part" }, text)),
  );
  const unchanging = isTold || hasNewParameters(result) ? [] : Object.entries(result.parameters.values).map(([key, [value]]) => `${key} = ${value}`);
  find("facts").textContent = [...(results.length > 1 ? [result.title] : []), ...result.facts, ...unchanging].join(" · ");
}

/** The arithmetic of a cell, or of a group alone; without either, what to do. */
function showStory({ cell, group }, { groups, y }) {
  const result = current();
  const story = find("arithmetic");
  if (group === null) {
    find("chosen").textContent = say("The arithmetic");
    story.replaceChildren();
    return;
  }
  const ofGroup = groups[group];
  const { n } = ofGroup.scope.values;
  const here = result.members[group].length;
  const part = here < n ? say(", {0} of them shown; the statistics are of all {1}", here, count(n)) : "";
  const owner = result.groups[group];
  const title = result.groupCount === 1 ? say("The only group") : result.window ? say("Window of {0}", owner) : say("Group {0}", owner);
  find("chosen").textContent = cell === null ? title : `${nameCell(cell)}: ${format(x[cell])} → ${format(y[cell])}`;
  story.replaceChildren(
    make("h3", {}, ...(result.window ? [] : [makeBadge(result.numbers[group])]), title),
    make("p", { class: "count" }, `n = ${sayValues(n)}${part}`),
    makeSteps(ofGroup),
  );
  if (cell !== null) story.append(make("h3", {}, say("The value")), makeSteps(workValue(result, cell, ofGroup)));
}

/** A name as formulas have it, behind its word in the page's language where that is another. */
const nameBoth = (name) => (say(name) === name ? name : `${say(name)} ${name}`);

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
    list.append(make("div", {}, make("dt", {}, nameBoth(name)), detail));
  }
  return list;
}

// -- the groups

const MOST_GROUPS = 24;

/** The groups with their statistics, those of the step marked: what the colours mean. */
function showGroups({ groups }) {
  const result = current();
  const section = find("groups");
  section.replaceChildren(...result.warnings.map((warning) => make("p", { class: "warning" }, say("Note: {0}", warning))));
  if (result.window || !x.length) return;
  const names = Object.keys(result.statistics);
  const { marks } = result.steps[stepNumber()];
  const mark = (name) => (marks.includes(name) ? { class: "now" } : {});
  const head = [say("group"), "n", ...names].map((name) => make("th", { scope: "col", ...mark(name) }, nameBoth(name)));
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
  section.append(make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": say("Statistics of the groups") }, table));
  const hidden = result.groupCount - lines.length;
  const notes = hidden ? [say("{0} of {1} groups are not listed.", count(hidden), count(result.groupCount))] : [];
  if (data.slice) notes.push(say("The statistics are of the whole groups, of which this page shows a part."));
  if (notes.length) section.append(make("p", { class: "note" }, notes.join(" ")));
}

/** Say whose numbers these are. */
function showExactness() {
  const result = current();
  const moved = listMoved(result);
  const status = find("exactness");
  const unrounded = result.rounding ? say(" and not rounded to {0}", result.dtype) : "";
  const rounded = result.rounding ? say(", rounded {0} to {1}", say(result.rounding), result.dtype) : "";
  const text = moved.length
    ? say("Recalculated in the browser, in double precision{0}: {1}. Reset brings back normcli's exact numbers.", unrounded, moved.join(", "))
    : say("Exact: these are normcli's own numbers{0}.", rounded);
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
  const n = sayValues(result.counts[group]);
  const owner = result.window ? say("window of {0}", n) : say("group {0}, {1}", result.groups[group], n);
  const centre = result.centre ? `, ${say(result.centre)} ${format(groups[group].scope.values[result.centre], 5)}` : "";
  find("said").textContent = say("{0}: input {1}, normalized {2}, {3}.", nameCell(cell), format(x[cell], 5), format(y[cell], 5), owner + centre);
}
