// The state in the address, so that a link or a bookmark keeps it: #norm=1&step=2&at=0,1,2,3&x=5:7.5&eps0=0.1; of the last step &step=last

const listChanges = (values, before) =>
  values.flatMap((value, n) => (Object.is(value, before[n]) ? [] : [`${n}:${formatExactly(value)}`])).join(",");

function formatLink() {
  const parts = { at: state.selected === null ? "" : index(state.selected).join(","), x: listChanges(x, given) };
  if (state.shown) parts.norm = state.shown;
  if (stepNumber()) parts.step = stepNumber() < current().steps.length - 1 ? stepNumber() : "last";
  results.forEach((result, n) => {
    if (hasNewEps(result)) parts[`eps${n}`] = result.moved.eps;
    for (const name of parameterNames(result)) parts[name + n] = listChanges(result.moved[name], result.parameters.values[name]);
  });
  const texts = Object.entries(parts).filter(([, value]) => value !== "");
  return texts.map(([name, value]) => `${name}=${value}`).join("&");
}

/** Take over what an address says; what it says amiss is left out. */
function readLink(text) {
  const parts = Object.fromEntries(text.replace(/^#/, "").split("&").map((part) => part.split("=")));
  const isWhole = (value, most) => /^\d+$/.test(value ?? "") && Number(value) <= most;
  const change = (list, changes = "") => {
    for (const [, n, value] of changes.matchAll(/(\d+):([^,]+)/g)) {
      if (Number(n) < list.length && Number.isFinite(Number(value))) list[n] = Number(value);
    }
  };
  resetAll();
  if (canEdit) change(x, parts.x);
  results.forEach((result, n) => {
    const eps = Number(parts[`eps${n}`]);
    if (result.eps !== null && parts[`eps${n}`] && eps >= 0 && Number.isFinite(eps)) result.moved.eps = eps;
    for (const name of parameterNames(result)) change(result.moved[name], parts[name + n]);
  });
  state.shown = isWhole(parts.norm, results.length - 1) ? Number(parts.norm) : 0;
  if (state.beside === state.shown) state.beside = state.shown ? 0 : 1;
  const isKnown = isWhole(parts.step, current().steps.length - 1);
  state.step = parts.step === "last" ? Infinity : isKnown ? Number(parts.step) : 0;
  state.selected = parts.at ? findCell(parts.at.split(",").map(Number)) : null;
}

let waiting = 0;
let written = "";

/** Write the state into the address, once in a while: browsers allow no more. */
function keepLink() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    written = formatLink();
    if (written !== location.hash.slice(1)) history.replaceState(null, "", `#${written}`);
  }, 200);
}
