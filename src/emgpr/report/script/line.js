// A line over one input, with its band and readings; or over the stages of a fit.

class LinePlot extends Plot {
  constructor(element, group, series) {
    super(element, group, series.label);
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
    const beside = 0.015 * (this.x1 - this.x0) || 0.5;
    [this.x0, this.x1] = [this.x0 - beside, this.x1 + beside];
  }

  ratio() { return 0.5; }

  beside() { return 12; }

  render(pen, colours) {
    const { xs } = this;
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
