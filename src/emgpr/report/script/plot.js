// A plot has one canvas for the screen, one for printing, and an overlay that is redrawn when the
// pointer moves. All plots in a group mark the same location.

const pageData = JSON.parse(document.getElementById("data").textContent);
const LIGHT = { ink: "#1a1f25", muted: "#5a6672", line: "#d9dee4", accent: "#0a6a94", paper: "#ffffff" };
const announcement = document.getElementById("announcement");
const FONT = "12px system-ui, sans-serif";
const HIT_RADIUS = 10; // pixels around a reading

function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Kind(bytes.buffer);
}
const floats = (text) => unpack(text, Float32Array);
const doubles = (text) => unpack(text, Float64Array);

function theme() {
  const style = getComputedStyle(document.documentElement);
  const colours = {};
  for (const name of Object.keys(LIGHT)) colours[name] = style.getPropertyValue(`--${name}`).trim() || LIGHT[name];
  return colours;
}

class Plot {
  constructor(element, group, label) {
    this.element = element;
    this.group = group;
    this.base = this.add("canvas", "base");
    this.print = this.add("canvas", "print");
    this.overlay = this.add("canvas", "overlay");
    this.tip = this.add("div", "tip");
    this.tip.hidden = true;
    element.tabIndex = 0;
    element.setAttribute("role", "application");
    element.setAttribute("aria-label", `${label}. Use the arrow keys to move and Escape to leave.`);
    for (const kind of ["pointermove", "pointerdown"]) element.addEventListener(kind, (e) => this.point(e));
    element.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") group.clear(); });
    element.addEventListener("keydown", (e) => this.key(e));
    element.addEventListener("blur", () => group.clear());
    group.plots.push(this);
  }

  add(tag, name) {
    const child = document.createElement(tag);
    child.className = name;
    if (tag === "canvas") child.setAttribute("aria-hidden", "true");
    this.element.append(child);
    return child;
  }

  resize(right) {
    this.width = this.element.clientWidth;
    const left = this.leftMargin();
    this.box = { left, top: 8, width: Math.max(60, this.width - left - right) };
    const maxHeight = 1.25 * this.box.width;
    this.box.height = this.box.width * (this.ratio() ?? 0.7);
    if (this.box.height > maxHeight) {
      this.box.width *= maxHeight / this.box.height;
      this.box.height = maxHeight;
    }
    this.height = Math.round(this.box.top + this.box.height + 42);
    const density = Math.max(1, window.devicePixelRatio || 1);
    for (const canvas of [this.base, this.print, this.overlay]) {
      const scale = canvas === this.print ? 2 * density : density; // Printers have a higher resolution.
      canvas.width = Math.round(this.width * scale);
      canvas.height = Math.round(this.height * scale);
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
  }

  // Browsers do not redraw a canvas when printing, so the print canvas is drawn in advance.
  draw() {
    this.resize(this.rightMargin());
    this.render(this.base.getContext("2d"), theme());
    this.render(this.print.getContext("2d"), LIGHT);
  }

  // Width of the axis label and the widest tick label.
  leftMargin() {
    const pen = this.base.getContext("2d");
    pen.font = FONT;
    let widest = 0;
    for (const count of [2, 4, 6, 8]) {  // The number of ticks depends on the height, which is not known yet.
      const { positions, text } = this.verticalTicks(count);
      for (const y of positions) widest = Math.max(widest, pen.measureText(text(y)).width);
    }
    return 28 + widest;
  }

  verticalTicks(count) {
    if (this.log) return { positions: logTicks(this.y0, this.y1), text: (y) => format(y) };
    return scaledTicks(this.y0, this.y1, count, this.yScale ?? 1);
  }

  // Conversion from data coordinates to pixels and back.
  px(x) { return this.box.left + ((x - this.x0) / (this.x1 - this.x0)) * this.box.width; }
  py(y) {
    const at = this.log ? Math.log(y / this.y0) / Math.log(this.y1 / this.y0) : (y - this.y0) / (this.y1 - this.y0);
    return this.box.top + (1 - at) * this.box.height;
  }
  dx(px) { return this.x0 + ((px - this.box.left) / this.box.width) * (this.x1 - this.x0); }
  dy(py) { return this.y1 - ((py - this.box.top) / this.box.height) * (this.y1 - this.y0); }

  axes(pen, colours, xLabel, yLabel) {
    const { left, top, width, height } = this.box;
    pen.font = FONT;
    pen.fillStyle = colours.muted;
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
    const horizontal = scaledTicks(this.x0, this.x1, Math.max(2, width / 75), this.xScale ?? 1);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const x of horizontal.positions) {
      const value = this.group.degrees ? wrapLongitude(x) : x;
      pen.fillRect(this.px(x) - 0.5, top + height, 1, 4);
      pen.fillText(horizontal.text(value), this.px(x), top + height + 6);
    }
    pen.fillText(truncate(pen, xLabel, width), left + width / 2, top + height + 24);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const vertical = this.verticalTicks(Math.max(2, height / 55));
    for (const y of vertical.positions) {
      pen.fillRect(left - 4, this.py(y) - 0.5, 4, 1);
      pen.fillText(vertical.text(y), left - 7, this.py(y));
    }
    pen.save();
    pen.translate(7, top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(truncate(pen, yLabel, height), 0, 0);
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

  showTip(lines, px, py) {
    this.tip.replaceChildren();
    lines.forEach((line, i) => {
      const child = document.createElement(i === 0 ? "b" : "div");
      child.textContent = line;
      this.tip.append(child);
    });
    this.tip.hidden = false;
    const { offsetWidth: w, offsetHeight: h } = this.tip;
    const x = px + 14 + w > this.width ? px - 14 - w : px + 14;
    const y = py - 14 - h < 0 ? py + 14 : py - 14 - h;
    this.tip.style.left = `${Math.max(0, Math.min(x, this.width - w))}px`;
    this.tip.style.top = `${Math.max(0, y)}px`;
  }

  clearOverlay() {
    this.overlay.getContext("2d").clearRect(0, 0, this.width, this.height);
    this.tip.hidden = true;
  }
}

function truncate(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && pen.measureText(`${text.slice(0, n)}\u2026`).width > width) n--;
  return `${text.slice(0, n)}\u2026`;
}

class Group {
  constructor() {
    this.plots = [];
    this.at = null;
  }

  select(at, active, announce) {
    this.at = at;
    for (const plot of this.plots) {
      plot.clearOverlay();
      plot.mark(at);
      if (plot.readout) plot.readout.textContent = plot.summary(at) || "\u00a0";
      if (plot === active) {
        const lines = plot.lines(at);
        plot.showTip(lines, ...plot.pixel(at));
        if (announce) announcement.textContent = lines.join(", ");
      }
    }
  }

  clear() {
    this.at = null;
    for (const plot of this.plots) {
      plot.clearOverlay();
      if (plot.readout) plot.readout.textContent = "\u00a0";
    }
  }
}
