// Create the plots of the page, and redraw them when the width or colours of the page change.

const plots = [];
const charts = pageData.charts;

if (charts?.kind === "map") {
  const group = Object.assign(new Group(), {
    x: charts.x, y: charts.y, inputs: charts.inputs, degrees: charts.degrees, aspect: charts.aspect, showsReadings: true,
    xs: doubles(charts.sites.x), ys: doubles(charts.sites.y),
    colours: { centre: unpack(charts.colours.centre, Uint8Array), std: unpack(charts.colours.std, Uint8Array) },
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
    group.showsReadings = event.target.checked;
    redraw();
  });
}

if (charts?.kind === "line") {
  const group = new Group(), xs = doubles(charts.x), sites = doubles(charts.sites.x), [input] = charts.inputs;
  for (const element of document.querySelectorAll('[data-chart="line"]')) {
    const output = charts.outputs[element.dataset.output];
    plots.push(new LinePlot(element, group, {
      xs, sites, name: output.name, unit: output.unit, log: output.scale.log,
      xScale: input.scale, xLabel: input.label, yLabel: withUnit(output),
      label: `Line of the predicted median of ${output.name} with its 95% interval`,
      centre: floats(output.centre), std: floats(output.std), low: floats(output.low), high: floats(output.high),
      readings: floats(output.readings),
      location: (index) => `${input.name} ${format(xs[index], 5)}`,
    }));
  }
}

for (const element of document.querySelectorAll('[data-chart="trace"]')) {
  const stages = pageData.trace, values = stages.map((stage) => stage.log_likelihood);
  plots.push(new LinePlot(element, new Group(), {
    xs: values.map((_, i) => i), centre: values, name: "", unit: "", xLabel: "stage", yLabel: "log-likelihood",
    label: "Log-likelihood after each stage of the joint optimisation",
    location: (index) => `stage ${index}: ${stages[index].learned}`,
  }));
}

function redraw() {
  for (const plot of plots) {
    plot.group.clear();
    plot.draw();
  }
}

let drawnWidth = 0;
function redrawIfResized() {
  const width = document.documentElement.clientWidth;
  if (width === drawnWidth) return;
  drawnWidth = width;
  redraw();
}

// Plots in a closed section have no width, so they are drawn when it is opened.
for (const section of document.querySelectorAll("details")) section.addEventListener("toggle", redraw);

redrawIfResized();
new ResizeObserver(() => requestAnimationFrame(redrawIfResized)).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (!matchMedia("print").matches) redraw();
});
