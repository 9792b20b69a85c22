// Histograms of x and of y on one scale, a colour for each group; of the group that is lit, mean and deviation.

const [PLOT_WIDTH, PLOT_HEIGHT, BAND, MOST_BINS] = [240, 176, 58, 26];

/** 1, 2 or 5 times a power of ten: the least such number that is not below another. */
function roundUp(least) {
  const unit = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * unit).find((step) => step >= least * (1 - 1e-9));
}

/** Where bins of both sides begin and end, and the ticks; null where nothing can be drawn. */
function chooseScale(values) {
  const finite = values.filter(Number.isFinite);
  const [low, high] = [0, ...finite].reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [0, 0]);
  if (!(high - low > 0) || !Number.isFinite(high - low)) return null;
  const width = roundUp((high - low) / MOST_BINS);
  const first = Math.floor(low / width + 1e-9);
  const bins = Math.floor(high / width + 1e-9) - first + 1;
  const tick = roundUp((bins * width) / 5);
  const ticks = [];
  for (let n = Math.ceil((first * width) / tick); n * tick <= (first + bins) * width; n++) ticks.push(Number((n * tick).toPrecision(12)));
  return {
    bins,
    ticks,
    bin: (value) => Math.floor(value / width + 1e-9) - first,
    at: (value) => 8 + ((value / width - first) / bins) * (PLOT_WIDTH - 16),
  };
}

/** How many values of each group lie in each bin. */
function countBins(result, values, { bin, bins }) {
  const counts = result.groups.map(() => new Array(bins).fill(0));
  values.forEach((value, cell) => Number.isFinite(value) && counts[result.owner[cell]][bin(value)]++);
  return counts;
}

const addBins = (a, b) => a.map((value, n) => value + b[n]);

let plotted = null;

/** Draw both histograms, the groups on top of each other. */
function drawHistograms(result, { y }) {
  const plot = find("plot");
  const scale = result.window ? null : chooseScale([...x, ...y]);
  plotted = null;
  plot.hidden = scale === null;
  if (scale === null) return;
  const sides = [["x", x, BAND + 14], ["y", y, 2 * BAND + 44]];
  const counted = sides.map(([, values]) => countBins(result, values, scale));
  const nothing = new Array(scale.bins).fill(0);
  const tallest = Math.max(1, ...counted.flatMap((counts) => counts.reduce(addBins, nothing)));
  const step = (PLOT_WIDTH - 16) / scale.bins;
  const picture = draw("svg", {
    viewBox: `0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}`, role: "img", "aria-label": say("Histograms of the input and of y on one scale, by group"),
  });
  const drawBar = (number, bin, under, bottom, attributes) => {
    const [height, foot] = [(number / tallest) * BAND, (under / tallest) * BAND];
    picture.append(draw("rect", { ...attributes, x: 8 + bin * step + 0.4, y: bottom - foot - height, width: Math.max(0.6, step - 0.8), height }));
  };
  sides.forEach(([name, , bottom], side) => {
    let under = nothing;
    counted[side].forEach((bars, group) => {
      const attributes = { class: `bar ${colour(result, group)}`, "data-group": group };
      bars.forEach((number, bin) => number && drawBar(number, bin, under[bin], bottom, attributes));
      under = addBins(under, bars);
    });
    picture.append(draw("line", { class: "axis", x1: 8, x2: PLOT_WIDTH - 8, y1: bottom, y2: bottom }));
    picture.append(draw("text", { x: 0, y: bottom - BAND + 4, class: "name" }, name));
  });
  const bottom = sides[1][2];
  for (const tick of scale.ticks) {
    picture.append(draw("line", { class: "axis", x1: scale.at(tick), x2: scale.at(tick), y1: bottom, y2: bottom + 3 }));
    picture.append(draw("text", { x: scale.at(tick), y: bottom + 13, "text-anchor": "middle" }, typeset(round(tick, 4))));
  }
  const marks = draw("g", { class: "marks" });
  picture.append(marks);
  plot.firstElementChild.replaceWith(picture);
  plotted = { sides, scale, marks };
}

/** Light the bars of one group, or all, and mark where its values lie. */
function lightHistograms(result, group) {
  if (plotted === null) return;
  const { sides, scale, marks } = plotted;
  marks.replaceChildren();
  for (const bar of find("plot").querySelectorAll(".bar")) {
    bar.classList.toggle("faded", group !== null && Number(bar.dataset.group) !== group);
  }
  for (const [, values, bottom] of sides) {
    drawMarks(marks, group === null ? values : result.members[group].map((cell) => values[cell]), bottom, scale);
  }
}

/** A dotted line at 0, a line at the mean, a shorter one at a deviation to each side. */
function drawMarks(marks, values, bottom, { at }) {
  const line = (value, height, kind) =>
    marks.append(draw("line", { class: kind, x1: at(value), x2: at(value), y1: bottom, y2: bottom - height }));
  line(0, BAND + 4, "zero");
  const centre = addUp(values) / values.length;
  const deviation = Math.sqrt(addUp(values.map((value) => (value - centre) ** 2)) / values.length);
  if (!Number.isFinite(centre + deviation)) return;
  line(centre, BAND + 4, "mark");
  for (const side of [-1, 1]) line(centre + side * deviation, BAND / 2, "mark");
}
