// Line charts: predictions against one input, with intervals and readings, or the log-likelihood
// against the stages of the optimisation.

class LinePlot extends Plot {
  constructor(element, group, series) {
    super(element, group, series.label);
    Object.assign(this, series);
    this.readout = element.closest(".card")?.querySelector(".readout") ?? null;
    const { xs } = this;
    [this.x0, this.x1] = [xs[0], xs[xs.length - 1]];
    const values = [...this.centre, ...(this.low ?? []), ...(this.high ?? []), ...(this.readings ?? [])];
    const finite = values.filter((v) => Number.isFinite(v) && (!this.log || v > 0));
    let [low, high] = [Math.min(...finite), Math.max(...finite)];
    if (this.log) [this.y0, this.y1] = [low / 1.05, high * 1.05];
    else {
      const margin = 0.05 * (high - low) || 1;
      [this.y0, this.y1] = [low - margin, high + margin];
    }
    const margin = 0.015 * (this.x1 - this.x0) || 0.5;
    [this.x0, this.x1] = [this.x0 - margin, this.x1 + margin];
  }

  ratio() { return 0.5; }

  rightMargin() { return 12; }

  render(pen, colours) {
    const { xs } = this;
    pen.clearRect(0, 0, this.width, this.height);
    this.axes(pen, colours, this.xLabel, this.yLabel);
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
    let site = -1, least = HIT_RADIUS;
    (this.readings ?? []).forEach((reading, i) => {
      const distance = Math.hypot(this.px(this.sites[i]) - px, this.py(reading) - py);
      if (distance < least) [site, least] = [i, distance];
    });
    return { index, site };
  }

  move([right]) {
    const last = this.xs.length - 1;
    const index = this.group.at ? this.group.at.index + right : Math.floor(last / 2);
    return { index: Math.max(0, Math.min(last, index)), site: -1 };
  }

  pixel({ index }) { return [this.px(this.xs[index]), this.py(this.centre[index])]; }

  value({ index }) {
    const text = this.std ? formatWithStd(this.centre[index], this.std[index]) : format(this.centre[index], 8);
    return `${text} ${this.unit}`.trim();
  }

  lines(at) {
    const lines = [`${this.name} ${this.value(at)}`.trim(), this.location(at.index)];
    if (this.low) lines.push(`95% interval: ${format(this.low[at.index])} to ${format(this.high[at.index])}`);
    if (at.site >= 0) lines.push(`measured: ${format(this.readings[at.site], 5)} at ${format(this.sites[at.site], 5)}`);
    return lines;
  }

  summary(at) { return `${this.value(at)} at ${this.location(at.index)}`; }

  mark(at) {
    const pen = this.overlay.getContext("2d"), colours = theme(), [px, py] = this.pixel(at);
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
