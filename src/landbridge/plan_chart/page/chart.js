// Draws the part of an arena in view: blocks, lines, the profile of live bytes and both axes.

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
// Names of steps end at the axis and rise to it: what is left of the room below for their length.
const NAME_TURN = 0.96, NAME_ROOM = (NAMES - 12 - 11 * Math.cos(NAME_TURN)) / Math.sin(NAME_TURN);
const DARK = matchMedia("(prefers-color-scheme: dark)");

class Chart extends View {
  constructor(canvas, palette) {
    super(canvas);
    this.palette = palette;
    this.widths = new Map();
    this.colour = "kind";
    this.show = { hover: null, chosen: null, related: null, matches: null, step: null };
  }

  get mode() {
    return DARK.matches ? "dark" : "light";
  }

  get tone() {
    return this.palette.surfaces[this.mode];
  }

  draw() {
    const c = this.context;
    c.font = FONT;
    c.fillStyle = this.tone.page;
    c.fillRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    this.clipped(TOP - 4, this.floor, () => this.drawBlocks());
    this.clipped(this.floor + GAP / 2, this.base, () => this.drawProfile());
    this.clipped(0, this.base, () => this.drawStep());
    this.drawByteAxis();
    this.drawStepAxis();
  }

  clipped(top, bottom, draw) {
    const c = this.context;
    c.save();
    c.beginPath();
    c.rect(LEFT, top, this.right - LEFT, bottom - top);
    c.clip();
    draw();
    c.restore();
  }

  swatch(block) {
    const { kinds, sizes } = this.palette;
    if (this.colour === "kind") return kinds[block.kind][this.mode];
    const rank = this.colour === "size"
      ? sizeClass(block.nbytes, this.arena.largest, sizes.length)
      : sizeClass(block.end - block.start, this.arena.longest, sizes.length);
    return sizes[rank][this.mode];
  }

  drawBlocks() {
    const c = this.context, { arena, tone, show } = this, { chosen, related, matches, hover } = show;
    const left = this.x(this.at(0)), right = this.x(this.at(arena.steps.length));
    c.fillStyle = tone.unused;
    c.fillRect(left, this.y(arena.peak), right - left, this.y(0) - this.y(arena.peak));
    for (const tick of this.byteTicks()) this.line(this.y(tick), tone.rule, 1, []);
    this.drawPeakBands(TOP - 4, this.floor);
    for (const block of arena.blocks) {
      if (!block.nbytes) continue;
      const [x, y, w, h] = this.box(block);
      if (x > this.right || x + w < LEFT || y > this.floor || y + h < 0) continue;
      const quiet = (matches && !matches.has(block)) || (chosen && block !== chosen && !related.has(block));
      const [fill, ink] = this.swatch(block), gap = w > 4 && h > 4 ? 1 : 0;
      c.globalAlpha = quiet ? 0.18 : 1;
      c.fillStyle = fill;
      c.fillRect(x, y, Math.max(w - gap, 0.6), Math.max(h - gap, 0.6));
      if (!quiet) {
        this.drawParts(block, [x, y, w, h], ink);
        this.label(block, [x, y, w, h], ink);
      }
      c.globalAlpha = 1;
    }
    if (chosen) this.drawUses(chosen);
    for (const [block, colour] of [[hover, tone.ink], [chosen, tone.band]]) {
      if (!block) continue;
      const [x, y, w, h] = this.box(block);
      c.strokeStyle = colour;
      c.lineWidth = 2;
      c.strokeRect(x - 0.5, y - 0.5, Math.max(w, 2), Math.max(h, 2));
    }
    this.drawLines();
  }

  // Borders of parts that different steps write (a concatenation that costs nothing), and updates in place.
  drawParts(block, [x, y, w, h], ink) {
    if (!block.uses.length || w < 8 || h < 8) return;
    const c = this.context, offsets = new Set(block.uses.filter((u) => u.writes && u.offset).map((u) => u.offset));
    c.strokeStyle = ink;
    c.lineWidth = 0.75;
    c.setLineDash([2, 2]);
    c.beginPath();
    for (const offset of offsets) {
      const at = Math.round(this.y(block.offset + offset)) + 0.5;
      c.moveTo(x, at);
      c.lineTo(x + w, at);
    }
    for (const step of block.rewrittenAt) {
      const at = Math.round(this.x(this.at(step))) + 0.5;
      c.moveTo(at, y);
      c.lineTo(at, y + h);
    }
    c.stroke();
    c.setLineDash([]);
  }

  // Where the chosen block is written (full circles) and read (rings), at the height of the bytes touched.
  drawUses(block) {
    const c = this.context, [, , w] = this.box(block), { tone } = this;
    if (w < 6) return;
    for (const use of block.uses) {
      const x = this.x((this.at(use.step) + this.at(use.step + 1)) / 2);
      const y = (this.y(block.offset + use.offset) + this.y(block.offset + use.offset + use.nbytes)) / 2;
      c.beginPath();
      c.arc(x, y, 4, 0, 7);
      c.lineWidth = 2;
      c.strokeStyle = tone.band;
      c.fillStyle = use.writes ? tone.band : tone.page;
      c.fill();
      c.stroke();
    }
  }

  width(text) {
    let known = this.widths.get(text);
    if (known === undefined) this.widths.set(text, (known = this.context.measureText(text).width));
    return known;
  }

  // `text` in `room` pixels: its first node, and of that both ends.
  shortened(text, room) {
    if (this.width(text) <= room) return text;
    const node = text.split("+")[0];
    for (const shorter of [node + "+…", node]) if (node !== text && this.width(shorter) <= room) return shorter;
    for (let kept = Math.floor((room / this.width(node)) * node.length); kept >= 3; kept--) {
      const tail = kept >> 1, cut = node.slice(0, kept - tail) + "…" + node.slice(node.length - tail);
      if (this.width(cut) <= room) return cut;
    }
    return "";
  }

  // The name along the side that has more room for it, and the size below when that fits too.
  label(block, [x, y, w, h], ink) {
    const c = this.context, left = Math.max(x, LEFT), top = Math.max(y, TOP);
    const wide = Math.min(x + w, this.right) - left - 8, high = Math.min(y + h, this.floor) - top - 8;
    if (Math.min(wide, high) < 5 || Math.max(wide, high) < 14) return;
    c.fillStyle = ink;
    const across = high >= 5 ? this.shortened(block.label, wide) : "";
    if (across && (across === block.label || wide >= high)) {
      c.fillText(across, left + 4, top + 12);
      const size = bytesText(block.nbytes);
      if (high > 20 && this.width(size) <= wide) c.fillText(size, left + 4, top + 25);
      return;
    }
    const along = this.shortened(block.label, high);
    if (!along) return;
    c.save();
    c.translate(left + (wide + 8) / 2 + 4, top + high + 4);
    c.rotate(-Math.PI / 2);
    c.fillText(along, 0, 0);
    c.restore();
  }

  line(y, colour, width, dash) {
    const c = this.context;
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(LEFT, Math.round(y) + 0.5);
    c.lineTo(this.right, Math.round(y) + 0.5);
    c.stroke();
    c.setLineDash([]);
  }

  drawLines() {
    const c = this.context, { arena, tone } = this;
    const lines = [[arena.peak, tone.ink, [], "planned"], [arena.lowerBound, tone.bound, [6, 4], "lower bound"]];
    if (arena.capacity !== null) lines.push([arena.capacity, tone.capacity, [6, 4], "capacity"]);
    const drawn = [];
    for (const [nbytes, colour, dash, name] of lines) {
      if (name === "lower bound" && nbytes === arena.peak) continue;
      const y = this.y(nbytes);
      this.line(y, colour, 1.5, dash);
      const text = name + " " + bytesText(nbytes), width = this.width(text);
      let x = this.right - width - 6;
      for (const other of drawn) if (Math.abs(other.y - y) < 14) x = Math.min(x, other.x - width - 16);
      drawn.push({ x, y });
      c.fillStyle = tone.page;
      c.globalAlpha = 0.85;
      c.fillRect(x - 4, y + 2, width + 8, 15);
      c.globalAlpha = 1;
      c.fillStyle = colour;
      c.fillText(text, x, y + 13);
    }
  }

  drawPeakBands(top, bottom) {
    const c = this.context, { arena, tone } = this;
    c.fillStyle = tone.band;
    c.globalAlpha = 0.16;
    for (let step = 0; step < arena.live.length; step++) {
      if (arena.live[step] !== arena.mostLive || !arena.mostLive) continue;
      const x = this.x(this.at(step));
      c.fillRect(x, top, Math.max(this.x(this.at(step + 1)) - x, 1), bottom - top);
    }
    c.globalAlpha = 1;
  }

  drawProfile() {
    const c = this.context, { arena, tone, base } = this, top = base - PROFILE;
    const y = (nbytes) => base - (nbytes / this.top) * PROFILE;
    this.drawPeakBands(top - GAP / 2, base);
    c.beginPath();
    c.moveTo(this.x(this.at(0)), base);
    arena.live.forEach((nbytes, step) => {
      c.lineTo(this.x(this.at(step)), y(nbytes));
      c.lineTo(this.x(this.at(step + 1)), y(nbytes));
    });
    c.lineTo(this.x(this.at(arena.live.length)), base);
    c.fillStyle = tone.live;
    c.fill();
    this.line(y(arena.lowerBound), tone.bound, 1.5, [6, 4]);
    if (arena.capacity !== null && arena.capacity <= this.top) this.line(y(arena.capacity), tone.capacity, 1.5, [6, 4]);
  }

  drawStep() {
    if (this.show.step === null) return;
    const c = this.context, x = this.x(this.at(this.show.step)), w = this.x(this.at(this.show.step + 1)) - x;
    c.fillStyle = this.tone.ink;
    c.globalAlpha = 0.09;
    c.fillRect(x, TOP - 4, Math.max(w, 1), this.base - TOP + 4);
    c.globalAlpha = 1;
  }

  byteTicks() {
    const { y0, y1 } = this.view, ticks = [];
    let step = 1;
    while ((y1 - y0) / step > 7) step = String(step)[0] === "2" ? (step * 5) / 2 : step * 2;
    for (let tick = Math.ceil(y0 / step) * step; tick <= y1; tick += step) ticks.push(tick);
    return ticks;
  }

  drawByteAxis() {
    const c = this.context;
    c.fillStyle = this.tone.quiet;
    c.textAlign = "right";
    const ticks = this.byteTicks(), close = ticks.length > 1 && ticks[1] - ticks[0] < ticks[0] / 100;
    for (const tick of ticks) c.fillText(close ? tick.toLocaleString("en") : bytesText(tick), LEFT - 7, this.y(tick) + 4);
    c.fillText("live bytes", LEFT - 7, this.base - 4);
    c.textAlign = "left";
  }

  drawStepAxis() {
    const c = this.context, { arena, tone } = this, room = arena.named ? 14 : 84;
    const marked = [this.show.step, arena.peakStep].filter((step) => step !== null);
    const taken = [];
    const put = (step, css, force) => {
      const middle = this.x((this.at(step) + this.at(step + 1)) / 2);
      const x = arena.named ? middle : this.x(this.at(step));
      if (x < LEFT || x > this.right + 1) return;
      if (!force && taken.some((other) => Math.abs(other - x) < room)) return;
      taken.push(x);
      c.fillStyle = css;
      if (arena.named) {
        c.save();
        c.translate(x + 4, this.base + 12);
        c.rotate(-NAME_TURN);
        c.textAlign = "right";
        c.fillText(this.shortened(arena.steps[step].label, NAME_ROOM), 0, 0);
      } else {
        c.save();
        c.textAlign = "center";
        c.fillText(arena.steps[step].name, x, this.base + 16);
      }
      c.restore();
    };
    if (!arena.steps.length) return;
    marked.forEach((step, n) => put(step, step === arena.peakStep ? tone.band : tone.ink, n === 0));
    const first = Math.max(this.stepAt(this.view.x0), 0), last = Math.min(this.stepAt(this.view.x1), arena.steps.length - 1);
    for (let step = first; step <= last; step++) put(step, tone.quiet, false);
  }
}
