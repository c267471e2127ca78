"use strict";
// Draws the maps and lines of the report, and says what is under the pointer, finger or cursor keys.
(() => {
  const all = JSON.parse(document.getElementById("data").textContent);
  const light = { ink: "#1a1f25", muted: "#5a6672", line: "#d9dee4", accent: "#0a6a94", paper: "#ffffff" };
  const spoken = document.getElementById("spoken");
  const near = 10; // pixels within which a reading is meant
  let printing = false;

  function unpacked(text, Kind) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Kind(bytes.buffer);
  }
  const floats = (text) => unpacked(text, Float32Array);
  const doubles = (text) => unpacked(text, Float64Array);

  function theme() {
    if (printing) return light;
    const style = getComputedStyle(document.documentElement);
    const found = {};
    for (const name of Object.keys(light)) found[name] = style.getPropertyValue(`--${name}`).trim() || light[name];
    return found;
  }

  // Numbers -------------------------------------------------------------------------------------

  const minus = (text) => text.replace("-", "\u2212");

  function plain(value, figures = 4) {
    return minus(String(Number(value.toPrecision(figures))));
  }

  // Two figures of the deviation, and the centre to the same place: 1.02 ± 0.56.
  function give(centre, std) {
    if (!(std > 0)) return plain(centre, 5);
    const places = Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(std))));
    if (Math.abs(centre) >= 1e7 || std < 1e-9) return `${plain(centre, 7)} \u00b1 ${plain(std, 2)}`;
    return minus(`${centre.toFixed(places)} \u00b1 ${std.toFixed(places)}`);
  }

  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return { found, places: Math.max(0, Math.ceil(-Math.log10(step) - 1e-9) + (step / power === 2.5 ? 1 : 0)) };
  }

  function logTicks(low, high) {
    const found = [];
    const several = high < 8 * low ? [1, 1.5, 2, 3, 5, 7] : [1, 2, 5];
    for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
      for (const m of several) if (m * 10 ** p >= low && m * 10 ** p <= high) found.push(m * 10 ** p);
    }
    return found;
  }

  const around = (longitude) => ((((longitude + 180) % 360) + 360) % 360) - 180;
  const withUnit = (input) => (input.unit ? `${input.name} (${input.unit})` : input.name);

  // A plot: two canvases, one of which is drawn anew at every move -------------------------------

  class Plot {
    constructor(element, group) {
      this.element = element;
      this.group = group;
      this.base = this.add("canvas", "base");
      this.over = this.add("canvas", "over");
      this.tip = this.add("div", "tip");
      this.tip.hidden = true;
      element.tabIndex = 0;
      element.setAttribute("role", "application");
      element.setAttribute("aria-label", `${this.title(group)}. Arrow keys move, Escape ends.`);
      for (const kind of ["pointermove", "pointerdown"]) element.addEventListener(kind, (e) => this.point(e));
      element.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") group.clear(); });
      element.addEventListener("keydown", (e) => this.key(e));
      element.addEventListener("blur", () => group.clear());
      group.plots.push(this);
    }

    add(tag, name) {
      const made = document.createElement(tag);
      made.className = name;
      if (tag === "canvas") made.setAttribute("aria-hidden", "true");
      this.element.append(made);
      return made;
    }

    size(right) {
      this.width = this.element.clientWidth;
      const left = this.margin();
      this.box = { left, top: 8, width: Math.max(60, this.width - left - right) };
      const most = 1.25 * this.box.width;
      this.box.height = this.box.width * (this.ratio() ?? 0.7);
      if (this.box.height > most) {
        this.box.width *= most / this.box.height;
        this.box.height = most;
      }
      this.height = Math.round(this.box.top + this.box.height + 42);
      const dense = Math.max(1, window.devicePixelRatio || 1);
      for (const canvas of [this.base, this.over]) {
        canvas.width = Math.round(this.width * dense);
        canvas.height = Math.round(this.height * dense);
        canvas.getContext("2d").setTransform(dense, 0, 0, dense, 0, 0);
      }
      this.base.style.height = `${this.height}px`;
    }

    // Room for the longest number beside the axis, and its title.
    margin() {
      const pen = this.base.getContext("2d");
      pen.font = "12px system-ui, sans-serif";
      const upward = this.upward(6);
      return 28 + Math.max(...upward.found.map((y) => pen.measureText(upward.text(y)).width));
    }

    upward(wanted) {
      if (this.log) return { found: logTicks(this.y0, this.y1), text: (y) => plain(y) };
      const { found, places } = ticks(this.y0, this.y1, wanted);
      return { found, text: (y) => minus(short(y, places)) };
    }

    // From data to pixels, and back.
    px(x) { return this.box.left + ((x - this.x0) / (this.x1 - this.x0)) * this.box.width; }
    py(y) {
      const at = this.log ? Math.log(y / this.y0) / Math.log(this.y1 / this.y0) : (y - this.y0) / (this.y1 - this.y0);
      return this.box.top + (1 - at) * this.box.height;
    }
    dx(px) { return this.x0 + ((px - this.box.left) / this.box.width) * (this.x1 - this.x0); }
    dy(py) { return this.y1 - ((py - this.box.top) / this.box.height) * (this.y1 - this.y0); }

    axes(pen, colours, right, up) {
      const { left, top, width, height } = this.box;
      pen.font = "12px system-ui, sans-serif";
      pen.fillStyle = colours.muted;
      pen.strokeStyle = colours.line;
      pen.lineWidth = 1;
      pen.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
      const across = ticks(this.x0, this.x1, Math.max(2, width / 75));
      pen.textAlign = "center";
      pen.textBaseline = "top";
      for (const x of across.found) {
        const said = this.group.degrees ? around(x) : x;
        pen.fillRect(this.px(x) - 0.5, top + height, 1, 4);
        pen.fillText(minus(short(said, across.places)), this.px(x), top + height + 6);
      }
      pen.fillText(fitted(pen, right, width), left + width / 2, top + height + 24);
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      const upward = this.upward(Math.max(2, height / 55));
      for (const y of upward.found) {
        pen.fillRect(left - 4, this.py(y) - 0.5, 4, 1);
        pen.fillText(upward.text(y), left - 7, this.py(y));
      }
      pen.save();
      pen.translate(7, top + height / 2);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "center";
      pen.fillText(fitted(pen, up, height), 0, 0);
      pen.restore();
    }

    point(event) {
      const edge = this.element.getBoundingClientRect();
      const px = event.clientX - edge.left, py = event.clientY - edge.top;
      const { left, top, width, height } = this.box;
      const outside = px < left || py < top || px > left + width || py > top + height;
      if (outside) this.group.clear();
      else this.group.select(this.find(px, py), this, false);
    }

    key(event) {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (event.key === "Escape") this.group.clear();
      if (!step) return;
      event.preventDefault();
      this.group.select(this.move(step), this, true);
    }

    say(lines, px, py) {
      this.tip.replaceChildren();
      lines.forEach((line, i) => {
        const made = document.createElement(i === 0 ? "b" : "div");
        made.textContent = line;
        this.tip.append(made);
      });
      this.tip.hidden = false;
      const { offsetWidth: w, offsetHeight: h } = this.tip;
      const x = px + 14 + w > this.width ? px - 14 - w : px + 14;
      const y = py - 14 - h < 0 ? py + 14 : py - 14 - h;
      this.tip.style.left = `${Math.max(0, Math.min(x, this.width - w))}px`;
      this.tip.style.top = `${Math.max(0, y)}px`;
    }

    wipe() {
      this.over.getContext("2d").clearRect(0, 0, this.width, this.height);
      this.tip.hidden = true;
    }
  }

  const short = (value, places) => (Math.abs(value) < 1e-12 ? 0 : value).toFixed(places);

  function fitted(pen, text, room) {
    if (pen.measureText(text).width <= room) return text;
    let n = text.length;
    while (n > 1 && pen.measureText(`${text.slice(0, n)}\u2026`).width > room) n--;
    return `${text.slice(0, n)}\u2026`;
  }

  // Plots that show the same place --------------------------------------------------------------

  class Group {
    constructor() {
      this.plots = [];
      this.at = null;
    }

    select(at, active, aloud) {
      this.at = at;
      for (const plot of this.plots) {
        plot.wipe();
        plot.mark(at);
        if (plot.readout) plot.readout.textContent = plot.line(at) || "\u00a0";
        if (plot === active) {
          const lines = plot.lines(at);
          plot.say(lines, ...plot.where(at));
          if (aloud && spoken) spoken.textContent = lines.join(", ");
        }
      }
    }

    clear() {
      this.at = null;
      for (const plot of this.plots) {
        plot.wipe();
        if (plot.readout) plot.readout.textContent = "\u00a0";
      }
    }
  }

  // Maps ------------------------------------------------------------------------------------------

  class MapPlot extends Plot {
    constructor(element, group, output, what) {
      super(element, Object.assign(group, { naming: [output, what] }));
      this.output = output;
      this.what = what;
      this.values = what === "std" ? output.stdValues : output.centreValues;
      this.scale = what === "std" ? output.std_scale : output.scale;
      this.colours = group.colours[what];
      this.readout = what === "centre" ? element.closest(".card").querySelector(".readout") : null;
      const { x, y } = group;
      this.x0 = x.first - x.step / 2;
      this.x1 = x.first + (x.n - 0.5) * x.step;
      this.y0 = y.first - y.step / 2;
      this.y1 = y.first + (y.n - 0.5) * y.step;
    }

    title(group) {
      const [output, what] = group.naming;
      return `Map of the ${what === "std" ? "standard deviation" : "predicted median"} of ${output.name}`;
    }

    ratio() { return this.group.aspect; }

    shade(value) {
      const { low, high, log } = this.scale;
      const at = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
      return Number.isFinite(at) ? Math.max(0, Math.min(255, Math.floor(at * 256))) : value > low ? 255 : 0;
    }

    css(value) {
      const i = 3 * this.shade(value);
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
          const from = 3 * this.shade(value), to = 4 * ((y.n - 1 - row) * x.n + column);
          for (let c = 0; c < 3; c++) pixels.data[to + c] = this.colours[from + c];
          pixels.data[to + 3] = 255;
        }
      }
      pen.putImageData(pixels, 0, 0);
      return small;
    }

    draw() {
      this.size(72);
      const colours = theme(), pen = this.base.getContext("2d");
      const { left, top, width, height } = this.box;
      const [right, up] = this.group.inputs;
      pen.clearRect(0, 0, this.width, this.height);
      this.axes(pen, colours, withUnit(right), withUnit(up));
      pen.imageSmoothingEnabled = false;
      pen.drawImage(this.picture ??= this.image(), left, top, width, height);
      if (this.group.marked) this.sites(pen);
      this.bar(pen, colours);
    }

    sites(pen) {
      const { xs, ys } = this.group;
      for (let i = 0; i < xs.length; i++) {
        const value = this.output.readingValues[i];
        if (Number.isNaN(value)) continue;
        const big = this.what === "centre";
        pen.beginPath();
        pen.arc(this.px(xs[i]), this.py(ys[i]), big ? 3 : 1.2, 0, 2 * Math.PI);
        pen.fillStyle = big ? this.css(value) : "#ffffff";
        pen.fill();
        if (big) {
          pen.lineWidth = 0.9;
          pen.strokeStyle = "#ffffff";
          pen.stroke();
        }
      }
    }

    bar(pen, colours) {
      const { left, top, width, height } = this.box;
      const x = left + width + 12;
      for (let i = 0; i < 256; i++) {
        pen.fillStyle = `rgb(${this.colours[3 * i]} ${this.colours[3 * i + 1]} ${this.colours[3 * i + 2]})`;
        pen.fillRect(x, top + height * (1 - (i + 1) / 256), 11, height / 256 + 0.6);
      }
      pen.fillStyle = colours.muted;
      pen.textAlign = "left";
      pen.textBaseline = "middle";
      for (const tick of this.scale.ticks) pen.fillText(plain(tick), x + 16, this.onBar(tick));
    }

    onBar(value) {
      const { low, high, log } = this.scale;
      const at = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
      return this.box.top + this.box.height * (1 - Math.max(0, Math.min(1, at)));
    }

    find(px, py) {
      const { x, y } = this.group;
      const column = Math.max(0, Math.min(x.n - 1, Math.round((this.dx(px) - x.first) / x.step)));
      const row = Math.max(0, Math.min(y.n - 1, Math.round((this.dy(py) - y.first) / y.step)));
      return { column, row, site: this.nearest(px, py, near) };
    }

    nearest(px, py, within) {
      const { xs, ys } = this.group;
      let found = -1, least = within;
      for (let i = 0; i < xs.length; i++) {
        if (Number.isNaN(this.output.readingValues[i])) continue;
        const away = Math.hypot(this.px(xs[i]) - px, this.py(ys[i]) - py);
        if (away < least) [found, least] = [i, away];
      }
      return found;
    }

    move([right, up]) {
      const { x, y, at } = this.group;
      let column = at ? at.column + right : Math.floor(x.n / 2), row = at ? at.row + up : Math.floor(y.n / 2);
      column = Math.max(0, Math.min(x.n - 1, column));
      row = Math.max(0, Math.min(y.n - 1, row));
      const [px, py] = this.where({ column, row });
      const half = Math.max(this.box.width / x.n, this.box.height / y.n) / 2;
      return { column, row, site: this.nearest(px, py, Math.max(half, 4)) };
    }

    where({ column, row }) {
      const { x, y } = this.group;
      return [this.px(x.first + column * x.step), this.py(y.first + row * y.step)];
    }

    value({ column, row }) {
      const i = row * this.group.x.n + column;
      const centre = this.output.centreValues[i];
      if (Number.isNaN(centre)) return null;
      return `${give(centre, this.output.stdValues[i])} ${this.output.unit}`.trim();
    }

    place({ column, row }) {
      const { x, y, inputs, degrees } = this.group;
      const right = x.first + column * x.step, up = y.first + row * y.step;
      const finer = (step) => Math.max(0, Math.min(8, 1 - Math.floor(Math.log10(Math.abs(step)))));
      const said = [
        `${inputs[0].name} ${minus((degrees ? around(right) : right).toFixed(finer(x.step)))}`,
        `${inputs[1].name} ${minus(up.toFixed(finer(y.step)))}`,
      ];
      return said.join(", ");
    }

    lines(at) {
      const value = this.value(at);
      const said = [value ? `${this.output.name} ${value}` : "outside the outline of the sites", this.place(at)];
      if (at.site >= 0) said.push(`measured here: ${plain(this.output.readingValues[at.site], 5)} ${this.output.unit}`.trim());
      return said;
    }

    line(at) {
      const value = this.value(at);
      return value ? `${value} at ${this.place(at)}` : `${this.place(at)}: outside the outline of the sites`;
    }

    mark(at) {
      const pen = this.over.getContext("2d"), { left, top, width, height } = this.box;
      const [px, py] = this.where(at), { x, y } = this.group;
      const w = width / x.n, h = height / y.n;
      for (const [colour, thick] of [["rgb(0 0 0 / 0.55)", 3], ["#ffffff", 1]]) {
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
      const bar = left + width + 12, level = this.onBar(value);
      pen.beginPath();
      pen.moveTo(bar, level); pen.lineTo(bar - 6, level - 5); pen.lineTo(bar - 6, level + 5);
      pen.fill();
    }
  }

  // Lines -----------------------------------------------------------------------------------------

  class LinePlot extends Plot {
    constructor(element, group, series) {
      super(element, Object.assign(group, { naming: series }));
      Object.assign(this, series);
      this.readout = element.closest(".card")?.querySelector(".readout") ?? null;
      const { xs } = this;
      [this.x0, this.x1] = [xs[0], xs[xs.length - 1]];
      const heights = [...this.centre, ...(this.low ?? []), ...(this.high ?? []), ...(this.readings ?? [])];
      const finite = heights.filter((v) => Number.isFinite(v) && (!this.log || v > 0));
      let [low, high] = [Math.min(...finite), Math.max(...finite)];
      if (this.log) [this.y0, this.y1] = [low / 1.05, high * 1.05];
      else {
        const room = 0.05 * (high - low) || 1;
        [this.y0, this.y1] = [low - room, high + room];
      }
      if (this.x1 <= this.x0) [this.x0, this.x1] = [this.x0 - 0.5, this.x0 + 0.5];
    }

    title(group) { return group.naming.label; }
    ratio() { return 0.5; }

    draw() {
      this.size(12);
      const colours = theme(), pen = this.base.getContext("2d"), { xs } = this;
      pen.clearRect(0, 0, this.width, this.height);
      this.axes(pen, colours, this.right, this.up);
      pen.save();
      pen.beginPath();
      pen.rect(this.box.left, this.box.top, this.box.width, this.box.height);
      pen.clip();
      if (this.low) {
        pen.beginPath();
        for (let i = 0; i < xs.length; i++) pen.lineTo(this.px(xs[i]), this.py(this.high[i]));
        for (let i = xs.length - 1; i >= 0; i--) pen.lineTo(this.px(xs[i]), this.py(this.low[i]));
        pen.globalAlpha = 0.22;
        pen.fillStyle = colours.accent;
        pen.fill();
        pen.globalAlpha = 1;
      }
      pen.beginPath();
      for (let i = 0; i < xs.length; i++) pen.lineTo(this.px(xs[i]), this.py(this.centre[i]));
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 2;
      pen.stroke();
      if (this.readings) {
        pen.fillStyle = colours.ink;
        for (let i = 0; i < this.sites.length; i++) {
          if (!Number.isFinite(this.readings[i])) continue;
          pen.beginPath();
          pen.arc(this.px(this.sites[i]), this.py(this.readings[i]), 2.4, 0, 2 * Math.PI);
          pen.fill();
        }
      }
      pen.restore();
    }

    find(px, py) {
      const x = this.dx(px);
      let index = 0;
      this.xs.forEach((at, i) => { if (Math.abs(at - x) < Math.abs(this.xs[index] - x)) index = i; });
      let site = -1, least = near;
      (this.readings ?? []).forEach((reading, i) => {
        const away = Math.hypot(this.px(this.sites[i]) - px, this.py(reading) - py);
        if (away < least) [site, least] = [i, away];
      });
      return { index, site };
    }

    move([right]) {
      const last = this.xs.length - 1;
      const index = this.group.at ? this.group.at.index + right : Math.floor(last / 2);
      return { index: Math.max(0, Math.min(last, index)), site: -1 };
    }

    where({ index }) { return [this.px(this.xs[index]), this.py(this.centre[index])]; }

    value({ index }) {
      const told = this.std ? give(this.centre[index], this.std[index]) : plain(this.centre[index], 8);
      return `${told} ${this.unit}`.trim();
    }

    lines(at) {
      const said = [`${this.name} ${this.value(at)}`.trim(), this.place(at.index)];
      if (this.low) said.push(`95%: ${plain(this.low[at.index])} to ${plain(this.high[at.index])}`);
      if (at.site >= 0) said.push(`measured: ${plain(this.readings[at.site], 5)} at ${plain(this.sites[at.site], 5)}`);
      return said;
    }

    line(at) { return `${this.value(at)} at ${this.place(at.index)}`; }

    mark(at) {
      const pen = this.over.getContext("2d"), colours = theme(), [px, py] = this.where(at);
      pen.strokeStyle = colours.muted;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(px, this.box.top); pen.lineTo(px, this.box.top + this.box.height);
      pen.stroke();
      pen.fillStyle = colours.accent;
      pen.strokeStyle = colours.paper;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(px, py, 5, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    }
  }

  // The page --------------------------------------------------------------------------------------

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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  for (const [kind, flag] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(kind, () => { printing = flag; redraw(); });
  }
})();
