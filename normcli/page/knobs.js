// What the reader may move: a value of the input, gamma, beta, eps. Each has a slider and a number.

const [LOWEST, HIGHEST, POSITIONS_PER_DECADE] = [-16, 181, 10];
const SLIDES = 200;

/** The positions of a slider: eps goes by powers of ten, everything else from one end of a range to the other. */
const LOGARITHMIC = {
  most: HIGHEST,
  toNumber: (position) => (position === 0 ? 0 : Number((10 ** (LOWEST + (position - 1) / POSITIONS_PER_DECADE)).toPrecision(3))),
  toPosition: (number) =>
    number === 0 ? 0 : Math.min(HIGHEST, Math.max(1, Math.round((Math.log10(number) - LOWEST) * POSITIONS_PER_DECADE) + 1)),
};
const slide = (low, high) => {
  const step = roundUp((high - low) / SLIDES);
  const first = Math.floor(low / step);
  return {
    most: Math.ceil(high / step) - first,
    toNumber: (position) => Number(((first + position) * step).toPrecision(12)),
    toPosition: (number) => Math.round(number / step) - first,
  };
};

const finite = given.filter(Number.isFinite);
const [least, most] = finite.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [0, 0]);
const margin = Math.min((most - least) / 2 || 1, Number.MAX_VALUE / 8);

/** The places of gamma and beta that a knob moves: those of the selected value, or all. */
function listPlaces(result) {
  const { owner, places } = result.parameters;
  return state.selected === null ? places.map((_, n) => n) : [owner[state.selected]];
}

function makeParameterKnob(name) {
  return {
    scale: slide(-4, 4),
    isThere: () => parameterNames(current()).includes(name),
    label: () => {
      const { places } = current().parameters;
      const moved = listPlaces(current());
      return moved.length === 1 ? `${name}${places[moved[0]]}` : say("{0}, all", name);
    },
    read: () => current().moved[name][listPlaces(current())[0]],
    write: (value) => listPlaces(current()).forEach((n) => (current().moved[name][n] = value)),
  };
}

/** The value of the input that its knob moves: the selected one, or the first, whose arithmetic is shown. */
const findMoved = () => state.selected ?? 0;

const KNOBS = {
  x: {
    scale: slide(least - margin, most + margin),
    isThere: () => x.length > 0 && canEdit,
    label: () => say("x at {0}", nameCell(findMoved())),
    read: () => x[findMoved()],
    write: (value) => (x[findMoved()] = value),
  },
  gamma: makeParameterKnob("gamma"),
  beta: makeParameterKnob("beta"),
  eps: {
    scale: LOGARITHMIC,
    least: 0,
    isThere: () => current().eps !== null,
    label: () => say("eps, {0}", say(current().epsPlace)),
    read: () => current().moved.eps,
    write: (value) => (current().moved.eps = value),
  },
};

/** Set all knobs to what they would move, and say what cannot be moved. */
function showKnobs() {
  for (const [name, knob] of Object.entries(KNOBS)) {
    const isThere = knob.isThere();
    find(`knob-${name}`).hidden = !isThere;
    const value = isThere ? knob.read() : null;
    const [slider, number] = [find(`${name}-slider`), find(`${name}-number`)];
    slider.disabled = number.disabled = value === null;
    find(`${name}-label`).textContent = isThere ? knob.label() : "";
    if (value === null || !Number.isFinite(value)) {
      number.value = "";
    } else {
      slider.value = knob.scale.toPosition(value);
      slider.setAttribute("aria-valuetext", formatExactly(value));
      if (number.value === "" || Number(number.value) !== value) number.value = String(value);
    }
    complain(name, "");
  }
  find("how").hidden = state.selected !== null || find("knob-x").hidden;
}

/** Say why a knob's number is none; with an empty text, nothing is wrong. */
function complain(name, text) {
  const box = find(`${name}-error`);
  box.textContent = text;
  box.hidden = !text;
  find(`${name}-number`).toggleAttribute("aria-invalid", Boolean(text));
  if (text) find(`${name}-number`).setAttribute("aria-invalid", "true");
}

/** Take what was typed, or say that it is no such number and what holds instead. */
function readNumber(name) {
  const knob = KNOBS[name];
  const text = find(`${name}-number`).value;
  const value = text === "" ? NaN : Number(text);
  if (Number.isFinite(value) && value >= (knob.least ?? -Infinity)) return value;
  const wanted = knob.least === undefined ? say("a number") : say("a number of {0} or more", knob.least);
  complain(name, say("{0} is not {1}: {2} stays.", text === "" ? say("Empty") : typeset(text), wanted, format(knob.read())));
  return null;
}

function listenToKnobs(onMove) {
  for (const [name, knob] of Object.entries(KNOBS)) {
    find(`${name}-slider`).max = knob.scale.most;
    find(`${name}-slider`).addEventListener("input", (event) => {
      knob.write(knob.scale.toNumber(Number(event.target.value)));
      onMove();
    });
    find(`${name}-number`).addEventListener("input", () => {
      const value = readNumber(name);
      if (value === null) return;
      knob.write(value);
      onMove();
    });
  }
}
