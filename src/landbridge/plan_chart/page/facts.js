"use strict";
// The facts of one arena, with what follows from them: live bytes, who makes and who reads each block.

const UNITS = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];

function bytesText(n) {
  for (const [size, unit] of UNITS) {
    if (n >= size) {
      const value = n / size;
      return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0) + " " + unit;
    }
  }
  return Math.round(n) + " B";
}

const exactText = (n) => n.toLocaleString("en") + " bytes";

class Arena {
  constructor(raw) {
    Object.assign(this, raw);
    this.times = [...this.steps.map((step) => step.time), this.endTime];
    this.live = this.steps.map(() => 0);
    this.readAt = this.steps.map(() => []);
    this.writtenAt = this.steps.map(() => []);
    for (const block of this.blocks) {
      for (let step = block.start; step < block.end; step++) this.live[step] += block.nbytes;
      for (const use of block.uses) (use.writes ? this.writtenAt : this.readAt)[use.step].push(block);
    }
    this.mostLive = this.live.reduce((a, b) => Math.max(a, b), 0);
    this.peakStep = Math.max(0, this.live.indexOf(this.mostLive));
    this.largest = this.blocks.reduce((a, b) => Math.max(a, b.nbytes), 1);
    this.longest = this.blocks.reduce((a, b) => Math.max(a, b.end - b.start), 1);
    this.named = this.blocks.some((block) => block.kind !== "unknown");
    for (const thing of [...this.blocks, ...this.steps]) thing.label = this.withoutPrefix(thing.id ?? thing.name);
    // Small blocks last: they stay visible, and are found first under the pointer.
    this.blocks.sort((a, b) => b.nbytes * (b.end - b.start) - a.nbytes * (a.end - a.start));
  }

  // Exporters put one word before every name of a node; a kernel is called after its nodes, joined by "+".
  withoutPrefix(name) {
    if (!this.prefix) return name;
    return name.split("+").map((node) => (node.startsWith(this.prefix) ? node.slice(this.prefix.length) : node)).join("+");
  }

  holders(step) {
    return this.blocks.filter((b) => b.start <= step && step < b.end && b.nbytes).sort((a, b) => b.nbytes - a.nbytes);
  }

  // What is read where `block` is written, and what is written where it is read.
  makers(block) {
    return this.neighbours(block, (use) => use.writes, this.readAt);
  }

  readers(block) {
    return this.neighbours(block, (use) => !use.writes, this.writtenAt);
  }

  neighbours(block, counts, at) {
    const found = new Set(block.uses.filter(counts).flatMap((use) => at[use.step]));
    found.delete(block);
    return [...found];
  }
}

function sizeClass(value, largest, classes) {
  let steps = 0;
  while (value && value * 4 <= largest && steps < classes - 1) {
    value *= 4;
    steps++;
  }
  return value ? classes - 1 - steps : 0;
}
