// A map for two inputs, with coloured cells, readings and a colour bar.

class MapPlot extends Plot {
  constructor(element, group, output, what) {
    super(element, group, `Map of the ${what === "std" ? "standard deviation" : "predicted median"} of ${output.name}`);
    this.output = output;
    this.what = what;
    this.values = what === "std" ? output.stdValues : output.centreValues;
    this.scale = what === "std" ? output.std_scale : output.scale;
    this.colours = group.colours[what];
    this.readout = what === "centre" ? element.closest(".card").querySelector(".readout") : null;
    [this.xScale, this.yScale] = group.inputs.map((input) => input.scale);
    [this.x0, this.x1] = this.extent(group.x, group.xs);
    [this.y0, this.y1] = this.extent(group.y, group.ys);
  }

  // The axes show all cells and all readings. Readings can lie outside the cells, whose centres
  // are inside the convex hull of the sites.
  extent({ first, step, n }, positions) {
    let low = first - step / 2, high = first + (n - 0.5) * step;
    for (const at of positions) [low, high] = [Math.min(low, at - step / 2), Math.max(high, at + step / 2)];
    return [low, high];
  }

  // The ratio of height to width is that of the cells, adjusted to the extent of the axes.
  ratio() {
    const { aspect, x, y } = this.group;
    if (aspect === null) return null;
    return (aspect * (this.y1 - this.y0) * (x.n - 1) * x.step) / ((this.x1 - this.x0) * (y.n - 1) * y.step);
  }

  cellSize() {
    const { x, y } = this.group;
    return [this.px(x.step) - this.px(0), this.py(0) - this.py(y.step)];
  }

  // Width of the colour bar and its labels. All maps leave room for the widest colour bar.
  colourBarWidth() {
    const pen = this.base.getContext("2d");
    pen.font = FONT;
    return 32 + Math.max(8, ...this.scale.ticks.map((tick) => pen.measureText(format(tick)).width));
  }

  // Return the position of a value on the colour scale, between 0 and 1.
  fraction(value) {
    const { low, high, log } = this.scale;
    return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  }

  colourIndex(value) {
    const { low } = this.scale, at = this.fraction(value);
    return Number.isFinite(at) ? Math.max(0, Math.min(255, Math.floor(at * 256))) : value > low ? 255 : 0;
  }

  cssColour(value) {
    const i = 3 * this.colourIndex(value);
    return `rgb(${this.colours[i]} ${this.colours[i + 1]} ${this.colours[i + 2]})`;
  }

  image() {
    const { x, y } = this.group;
    const small = document.createElement("canvas");
    small.width = x.n;
    small.height = y.n;
    const pen = small.getContext("2d");
    const pixels = pen.createImageData(x.n, y.n);
    for (let row = 0; row < y.n; row++) {
      for (let column = 0; column < x.n; column++) {
        const value = this.values[row * x.n + column];
        if (Number.isNaN(value)) continue;
        const from = 3 * this.colourIndex(value), to = 4 * ((y.n - 1 - row) * x.n + column);
        for (let c = 0; c < 3; c++) pixels.data[to + c] = this.colours[from + c];
        pixels.data[to + 3] = 255;
      }
    }
    pen.putImageData(pixels, 0, 0);
    return small;
  }

  rightMargin() { return Math.max(...this.group.plots.map((plot) => plot.colourBarWidth())); }

  render(pen, colours) {
    const [x, y] = this.group.inputs;
    pen.clearRect(0, 0, this.width, this.height);
    this.axes(pen, colours, x.label, y.label);
    pen.imageSmoothingEnabled = false;
    const [w, h] = this.cellSize(), { n: nx } = this.group.x, { n: ny } = this.group.y;
    const [left, top] = this.pixel({ column: -0.5, row: ny - 0.5 });
    pen.drawImage(this.cells ??= this.image(), left, top, nx * w, ny * h);
    if (this.group.showsReadings) this.drawReadings(pen);
    this.drawColourBar(pen, colours);
  }

  drawReadings(pen) {
    const { xs, ys } = this.group, isCentre = this.what === "centre";
    // The more sites there are, the smaller are the circles, so that the map can be seen.
    const shrink = Math.min(1, Math.sqrt(300 / xs.length)), radius = Math.max(0.6, (isCentre ? 3 : 1.2) * shrink);
    for (let i = 0; i < xs.length; i++) {
      const value = this.output.readingValues[i];
      if (Number.isNaN(value)) continue;
      pen.beginPath();
      pen.arc(this.px(xs[i]), this.py(ys[i]), radius, 0, 2 * Math.PI);
      pen.fillStyle = isCentre ? this.cssColour(value) : "#ffffff";
      pen.fill();
      if (isCentre) {
        pen.lineWidth = 0.9 * shrink;
        pen.strokeStyle = "#ffffff";
        pen.stroke();
      }
    }
  }

  drawColourBar(pen, colours) {
    const { left, top, width, height } = this.box;
    const x = left + width + 12;
    for (let i = 0; i < 256; i++) {
      pen.fillStyle = `rgb(${this.colours[3 * i]} ${this.colours[3 * i + 1]} ${this.colours[3 * i + 2]})`;
      pen.fillRect(x, top + height * (1 - (i + 1) / 256), 11, height / 256 + 0.6);
    }
    pen.fillStyle = colours.muted;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    for (const tick of this.scale.ticks) pen.fillText(format(tick), x + 16, this.barLevel(tick));
  }

  barLevel(value) {
    return this.box.top + this.box.height * (1 - Math.max(0, Math.min(1, this.fraction(value))));
  }

  find(px, py) {
    const { x, y } = this.group;
    const column = Math.max(0, Math.min(x.n - 1, Math.round((this.dx(px) - x.first) / x.step)));
    const row = Math.max(0, Math.min(y.n - 1, Math.round((this.dy(py) - y.first) / y.step)));
    return { column, row, site: this.nearest(px, py, HIT_RADIUS) };
  }

  nearest(px, py, radius) {
    const { xs, ys } = this.group;
    let found = -1, least = radius;
    for (let i = 0; i < xs.length; i++) {
      if (Number.isNaN(this.output.readingValues[i])) continue;
      const distance = Math.hypot(this.px(xs[i]) - px, this.py(ys[i]) - py);
      if (distance < least) [found, least] = [i, distance];
    }
    return found;
  }

  move([right, up]) {
    const { x, y, at } = this.group;
    let column = at ? at.column + right : Math.floor(x.n / 2), row = at ? at.row + up : Math.floor(y.n / 2);
    column = Math.max(0, Math.min(x.n - 1, column));
    row = Math.max(0, Math.min(y.n - 1, row));
    const [px, py] = this.pixel({ column, row });
    const half = Math.max(...this.cellSize()) / 2;
    return { column, row, site: this.nearest(px, py, Math.max(half, 4)) };
  }

  pixel({ column, row }) {
    const { x, y } = this.group;
    return [this.px(x.first + column * x.step), this.py(y.first + row * y.step)];
  }

  value({ column, row }) {
    const i = row * this.group.x.n + column;
    const centre = this.output.centreValues[i];
    if (Number.isNaN(centre)) return null;
    return `${formatWithStd(centre, this.output.stdValues[i])} ${this.output.unit}`.trim();
  }

  location({ column, row }) {
    const { x, y, inputs, degrees } = this.group;
    const right = x.first + column * x.step, up = y.first + row * y.step;
    const first = formatCoordinate(degrees ? wrapLongitude(right) : right, x.step);
    // The unit is given where it differs from that of the axis.
    const [a, b] = inputs.map((input) => (input.scale === 1 ? "" : ` ${input.unit}`));
    return `${inputs[0].name} ${first}${a}, ${inputs[1].name} ${formatCoordinate(up, y.step)}${b}`;
  }

  lines(at) {
    const value = this.value(at);
    const lines = [value ? `${this.output.name} ${value}` : "outside the convex hull of the sites", this.location(at)];
    if (at.site >= 0) lines.push(`measured here: ${format(this.output.readingValues[at.site], 5)} ${this.output.unit}`.trim());
    return lines;
  }

  summary(at) {
    const value = this.value(at);
    return value ? `${value} at ${this.location(at)}` : `${this.location(at)}: outside the convex hull of the sites`;
  }

  mark(at) {
    const pen = this.overlay.getContext("2d"), { left, top, width, height } = this.box;
    const [px, py] = this.pixel(at), { x } = this.group;
    const [w, h] = this.cellSize();
    for (const [colour, thick] of [["rgb(0 0 0 / 0.45)", 2.5], ["#ffffff", 1]]) {
      pen.strokeStyle = colour;
      pen.lineWidth = thick;
      pen.beginPath();
      pen.moveTo(px, top); pen.lineTo(px, py - h / 2);
      pen.moveTo(px, py + h / 2); pen.lineTo(px, top + height);
      pen.moveTo(left, py); pen.lineTo(px - w / 2, py);
      pen.moveTo(px + w / 2, py); pen.lineTo(left + width, py);
      pen.rect(px - w / 2, py - h / 2, w, h);
      pen.stroke();
    }
    if (at.site >= 0) {
      pen.strokeStyle = "#000000";
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(this.px(this.group.xs[at.site]), this.py(this.group.ys[at.site]), 5, 0, 2 * Math.PI);
      pen.stroke();
    }
    const value = this.values[at.row * x.n + at.column];
    if (Number.isNaN(value)) return;
    pen.fillStyle = theme().ink;
    const bar = left + width + 12, level = this.barLevel(value);
    pen.beginPath();
    pen.moveTo(bar, level); pen.lineTo(bar - 6, level - 5); pen.lineTo(bar - 6, level + 5);
    pen.fill();
  }
}
