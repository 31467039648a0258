// The part of an arena in view: where steps and bytes lie on the canvas, and what lies under a point of it.

const LEFT = 74, RIGHT = 14, TOP = 10, GAP = 12, PROFILE = 84, NAMES = 96, TIMES = 34;
const CAPACITY_IN_VIEW = 1.5; // a capacity further above the plan would make blocks too flat to read

class View {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.scale = "steps";
  }

  open(arena) {
    this.arena = arena;
    const near = arena.capacity !== null && arena.capacity <= arena.peak * CAPACITY_IN_VIEW;
    this.top = Math.max(arena.peak, near ? arena.capacity : 0, 1) * 1.02;
    this.fit();
  }

  fit() {
    this.view = { x0: this.at(0), x1: this.at(this.arena.steps.length), y0: 0, y1: this.top };
  }

  // The place of a step on the horizontal axis, in steps or in time.
  at(step) {
    return this.scale === "time" ? this.arena.times[step] : step;
  }

  stepAt(place) {
    if (this.scale === "steps") return Math.floor(place);
    const { times } = this.arena;
    let low = 0, high = times.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= place) low = middle; else high = middle;
    }
    return low;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, { clientWidth, clientHeight } = this.canvas;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.right = clientWidth - RIGHT;
    this.base = clientHeight - (this.arena.named ? NAMES : TIMES);
    this.floor = this.base - PROFILE - GAP;
  }

  x(place) {
    const { x0, x1 } = this.view;
    return LEFT + ((place - x0) / (x1 - x0)) * (this.right - LEFT);
  }

  y(offset) {
    const { y0, y1 } = this.view;
    return this.floor - ((offset - y0) / (y1 - y0)) * (this.floor - TOP);
  }

  placeAt(px) {
    return this.view.x0 + ((px - LEFT) / (this.right - LEFT)) * (this.view.x1 - this.view.x0);
  }

  offsetAt(py) {
    return this.view.y0 + ((this.floor - py) / (this.floor - TOP)) * (this.view.y1 - this.view.y0);
  }

  // Which part of the picture a point is in.
  areaAt(px, py) {
    if (px < LEFT) return "bytes";
    return py <= this.floor ? "blocks" : "steps";
  }

  stepUnder(px) {
    const step = this.stepAt(this.placeAt(px));
    return px >= LEFT && step >= 0 && step < this.arena.steps.length ? step : null;
  }

  blockUnder(px, py) {
    if (this.areaAt(px, py) !== "blocks" || py < TOP) return null;
    const { blocks } = this.arena, reach = 2;
    for (let n = blocks.length - 1; n >= 0; n--) {
      const [x, y, w, h] = this.box(blocks[n]);
      if (px >= x - (w < 4 ? reach : 0) && px <= x + w + (w < 4 ? reach : 0) && py >= y - (h < 4 ? reach : 0) &&
          py <= y + h + (h < 4 ? reach : 0) && blocks[n].nbytes) return blocks[n];
    }
    return null;
  }

  box(block) {
    const x = this.x(this.at(block.start)), y = this.y(block.offset + block.nbytes);
    return [x, y, this.x(this.at(block.end)) - x, this.y(block.offset) - y];
  }

  zoom(px, py, factor, area) {
    const full = { x0: this.at(0), x1: this.at(this.arena.steps.length), y0: 0, y1: this.top };
    if (area !== "bytes") this.zoomAxis("x", this.placeAt(px), factor, full);
    if (area !== "steps") this.zoomAxis("y", this.offsetAt(py), factor, full);
  }

  zoomAxis(axis, fixed, factor, full) {
    const low = axis + "0", high = axis + "1", whole = full[high] - full[low];
    const least = axis === "x" ? whole / Math.max(this.arena.steps.length / 2, 1) / 8 : 64;
    const span = Math.min(Math.max((this.view[high] - this.view[low]) * factor, Math.min(least, whole)), whole);
    const share = (fixed - this.view[low]) / (this.view[high] - this.view[low]);
    this.view[low] = Math.min(Math.max(fixed - share * span, full[low]), full[high] - span);
    this.view[high] = this.view[low] + span;
  }

  pan(dx, dy) {
    const perX = (this.view.x1 - this.view.x0) / (this.right - LEFT);
    const perY = (this.view.y1 - this.view.y0) / (this.floor - TOP);
    this.shift("x", -dx * perX, this.at(0), this.at(this.arena.steps.length));
    this.shift("y", dy * perY, 0, this.top);
  }

  shift(axis, by, least, most) {
    const low = axis + "0", high = axis + "1";
    const moved = Math.min(Math.max(by, least - this.view[low]), most - this.view[high]);
    this.view[low] += moved;
    this.view[high] += moved;
  }

  // Bring `block` into the middle of the view, with room around it.
  reveal(block) {
    const x0 = this.at(block.start), x1 = this.at(block.end);
    this.fit();
    this.centre("x", (x0 + x1) / 2, Math.max((x1 - x0) * 3, (this.view.x1 - this.view.x0) / 12));
    this.centre("y", block.offset + block.nbytes / 2, Math.max(block.nbytes * 3, this.top / 6));
  }

  centre(axis, middle, span) {
    const low = axis + "0", high = axis + "1", { [low]: least, [high]: most } = this.view;
    const size = Math.min(span, most - least);
    this.view[low] = Math.min(Math.max(middle - size / 2, least), most - size);
    this.view[high] = this.view[low] + size;
  }
}
