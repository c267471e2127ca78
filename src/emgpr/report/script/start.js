// The plots of this page, drawn, and drawn anew when its width or colours change.

const plots = [];
const charts = all.charts;

if (charts?.kind === "map") {
  const group = Object.assign(new Group(), {
    x: charts.x, y: charts.y, inputs: charts.inputs, degrees: charts.degrees, aspect: charts.aspect, marked: true,
    xs: doubles(charts.sites.x), ys: doubles(charts.sites.y),
    colours: { centre: unpacked(charts.colours.centre, Uint8Array), std: unpacked(charts.colours.std, Uint8Array) },
  });
  for (const output of charts.outputs) {
    Object.assign(output, {
      centreValues: floats(output.centre), stdValues: floats(output.std), readingValues: floats(output.readings),
    });
  }
  for (const element of document.querySelectorAll('[data-chart="map"]')) {
    plots.push(new MapPlot(element, group, charts.outputs[element.dataset.output], element.dataset.what));
  }
  document.getElementById("show-sites").addEventListener("change", (event) => {
    group.marked = event.target.checked;
    redraw();
  });
}

if (charts?.kind === "line") {
  const group = new Group(), xs = doubles(charts.x), sites = doubles(charts.sites.x), [input] = charts.inputs;
  for (const element of document.querySelectorAll('[data-chart="line"]')) {
    const output = charts.outputs[element.dataset.output];
    plots.push(new LinePlot(element, group, {
      xs, sites, name: output.name, unit: output.unit, log: output.log, right: withUnit(input), up: withUnit(output),
      label: `Line of the predicted median of ${output.name} with its 95% band`,
      centre: floats(output.centre), std: floats(output.std), low: floats(output.low), high: floats(output.high),
      readings: floats(output.readings),
      place: (index) => `${input.name} ${plain(xs[index], 5)}`,
    }));
  }
}

for (const element of document.querySelectorAll('[data-chart="trace"]')) {
  const { height, stages } = all.trace;
  plots.push(new LinePlot(element, new Group(), {
    xs: height.map((_, i) => i), centre: height, name: "", unit: "", right: "stage", up: "log-likelihood",
    label: "Log-likelihood over the stages of the fit",
    place: (index) => `stage ${index}: ${stages[index]}`,
  }));
}

function redraw() {
  for (const plot of plots) {
    plot.group.clear();
    plot.draw();
  }
}

let drawnAt = 0;
function fit() {
  const width = document.documentElement.clientWidth;
  if (width === drawnAt) return;
  drawnAt = width;
  redraw();
}

fit();
new ResizeObserver(() => requestAnimationFrame(fit)).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (!matchMedia("print").matches) redraw();
});
