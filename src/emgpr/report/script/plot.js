// A plot: a canvas for the screen, one for paper, and one above them that is drawn anew at every
// move; and plots that show the same place.

const all = JSON.parse(document.getElementById("data").textContent);
const light = { ink: "#1a1f25", muted: "#5a6672", line: "#d9dee4", accent: "#0a6a94", paper: "#ffffff" };
const spoken = document.getElementById("spoken");
const font = "12px system-ui, sans-serif";
const near = 10; // pixels within which a reading is meant

function unpacked(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}
const floats = (text) => unpacked(text, Float32Array);
const doubles = (text) => unpacked(text, Float64Array);

function theme() {
  const style = getComputedStyle(document.documentElement);
  const found = {};
  for (const name of Object.keys(light)) found[name] = style.getPropertyValue(`--${name}`).trim() || light[name];
  return found;
}

class Plot {
  constructor(element, group, label) {
    this.element = element;
    this.group = group;
    this.base = this.add("canvas", "base");
    this.paper = this.add("canvas", "paper");
    this.over = this.add("canvas", "over");
    this.tip = this.add("div", "tip");
    this.tip.hidden = true;
    element.tabIndex = 0;
    element.setAttribute("role", "application");
    element.setAttribute("aria-label", `${label}. Arrow keys move, Escape ends.`);
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
    for (const canvas of [this.base, this.paper, this.over]) {
      const scale = canvas === this.paper ? 2 * dense : dense; // paper is finer than screens
      canvas.width = Math.round(this.width * scale);
      canvas.height = Math.round(this.height * scale);
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
  }

  // A browser that prints takes what was drawn before, so what goes on paper is drawn beforehand.
  draw() {
    this.size(this.beside());
    this.render(this.base.getContext("2d"), theme());
    this.render(this.paper.getContext("2d"), light);
  }

  // Room for the longest number beside the axis, and its title.
  margin() {
    const pen = this.base.getContext("2d");
    pen.font = font;
    let widest = 0;
    for (const wanted of [2, 4, 6, 8]) {  // how many there will be follows from the height
      const { found, text } = this.upward(wanted);
      for (const y of found) widest = Math.max(widest, pen.measureText(text(y)).width);
    }
    return 28 + widest;
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
    pen.font = font;
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

function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let n = text.length;
  while (n > 1 && pen.measureText(`${text.slice(0, n)}\u2026`).width > room) n--;
  return `${text.slice(0, n)}\u2026`;
}

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
        if (aloud) spoken.textContent = lines.join(", ");
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
