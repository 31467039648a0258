// The page around the chart: facts, search, panel, and what pointer and keys do.

const plan = JSON.parse(document.getElementById("plan").textContent);
const arenas = plan.arenas.map((raw) => new Arena(raw));
const el = (id) => document.getElementById(id);
const chart = new Chart(el("canvas"), plan.palette);
let arena = null, query = "", matchNumber = -1, asked = false;

function make(tag, text = "", attributes = {}) {
  const node = document.createElement(tag);
  node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    chart.draw();
  });
}

function openArena(number) {
  arena = arenas[number];
  chart.open(arena);
  chart.colour = arena.named ? "kind" : "size";
  chart.scale = "steps";
  el("colour").value = chart.colour;
  el("colour").querySelector("[value=kind]").disabled = !arena.named;
  el("scale").value = "steps";
  el("scaling").hidden = arena.times.every((time, step) => time === arena.times[0] + step);
  [...el("arenas").children].forEach((b, n) => b.setAttribute("aria-pressed", String(n === number)));
  showFacts();
  choose(null);
  search();
  el("listing").open = false;
  chart.resize();
  chart.fit();
  redraw();
}

function showFacts() {
  const spare = arena.peak - arena.lowerBound, facts = el("facts");
  facts.replaceChildren();
  const fact = (name, value, title, css = "") => {
    const pair = make("div", "", { title });
    pair.append(make("dt", name), make("dd", value, css ? { class: css } : {}));
    facts.append(pair);
  };
  fact("planned", bytesText(arena.peak), exactText(arena.peak));
  fact("lower bound", bytesText(arena.lowerBound), exactText(arena.lowerBound));
  if (arena.provedOptimal) fact("", "proved optimal", "no plan of these blocks needs less", "good");
  else fact("above it", bytesText(spare), "not proved optimal: " + exactText(spare));
  if (arena.capacity !== null) {
    const over = arena.peak > arena.capacity;
    fact("capacity", bytesText(arena.capacity), exactText(arena.capacity), over ? "bad" : "");
  }
  fact("blocks", String(arena.blocks.length), "");
  fact("steps", String(arena.steps.length), "");
}

function showLegend() {
  const legend = el("legend"), { mode } = chart;
  const entry = (fill, text) => {
    const item = make("span");
    const box = make("i");
    box.style.background = fill;
    item.append(box, text);
    legend.append(item);
  };
  legend.replaceChildren();
  if (chart.colour === "kind") {
    const used = new Set(arena.blocks.map((block) => block.kind));
    for (const [kind, swatch] of Object.entries(plan.palette.kinds)) if (used.has(kind)) entry(swatch[mode][0], kind);
  } else {
    const { sizes } = plan.palette, least = 1 / 4 ** (sizes.length - 1);
    const whole = chart.colour === "size" ? arena.largest : arena.longest;
    const text = (n) => (chart.colour === "size" ? bytesText(n) : counted(Math.max(1, Math.round(n)), "step"));
    sizes.forEach((swatch, n) => {
      const ends = { 0: "up to " + text(whole * least), [sizes.length - 1]: "up to " + text(whole) };
      entry(swatch[mode][0], ends[n] ?? "");
    });
  }
  entry(plan.palette.surfaces[mode].unused, "unused");
}

function search() {
  query = el("search").value.trim().toLowerCase();
  matchNumber = -1;
  const found = query ? arena.blocks.filter((block) => block.id.toLowerCase().includes(query)) : null;
  chart.show.matches = found && new Set(found);
  el("matches").textContent = found ? `${found.length} of ${arena.blocks.length}` : "";
  redraw();
}

function nextMatch(by) {
  const found = [...(chart.show.matches ?? [])].sort((a, b) => a.start - b.start);
  if (!found.length) return;
  matchNumber = (matchNumber + by + found.length) % found.length;
  chart.reveal(found[matchNumber]);
  choose(found[matchNumber]);
  el("matches").textContent = `${matchNumber + 1} of ${found.length}`;
}

function choose(block) {
  chart.show.chosen = block;
  chart.show.related = block && new Set([...arena.makers(block), ...arena.readers(block)]);
  if (block) showBlock(block);
  else showStep(chart.show.step ?? arena.peakStep);
  redraw();
}

function blockList(blocks, whole) {
  const list = make("ul");
  for (const block of blocks) {
    const item = make("li", "", { "data-block": "", title: block.id, tabindex: "0" });
    const bar = make("i");
    bar.style.width = (100 * block.nbytes) / whole + "%";
    bar.style.setProperty("--bar", chart.swatch(block)[0]);
    item.append(bar, make("span", block.label, { class: "name" }), make("span", bytesText(block.nbytes), { class: "size" }));
    item.onclick = () => choose(block);
    item.onkeydown = (event) => event.key === "Enter" && choose(block);
    list.append(item);
  }
  return list;
}

const SHOWN = 40;

function showStep(step) {
  const panel = el("panel"), holders = arena.holders(step), live = arena.live[step] ?? 0;
  panel.replaceChildren();
  if (!arena.steps.length) return;
  const peak = live === arena.mostLive;
  panel.append(
    make("h2", (arena.named ? "" : "time ") + arena.steps[step].name),
    make("p", `step ${step}${peak ? ", where most bytes are alive" : ""}`, { class: "quiet" }),
    make("p", `${bytesText(live)} alive, ${bytesText(arena.peak - live)} unused`),
    make("h3", `${counted(holders.length, "block")} alive, largest first`),
    blockList(holders.slice(0, SHOWN), Math.max(live, 1)),
  );
  if (holders.length > SHOWN) panel.append(make("p", `and ${holders.length - SHOWN} smaller ones`, { class: "quiet" }));
}

const stepName = (step) => arena.steps[step]?.name ?? String(arena.endTime);
const stepLabel = (step) => arena.steps[step]?.label ?? String(arena.endTime);
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

function showBlock(block) {
  const panel = el("panel");
  panel.replaceChildren(
    make("h2", block.id),
    make("p", [block.what, arena.named ? block.kind : ""].filter(Boolean).join(", "), { class: "quiet" }),
    make("p", exactText(block.nbytes)),
    make("p", `at offset ${block.offset.toLocaleString("en")}, to ${(block.offset + block.nbytes).toLocaleString("en")}`),
    make("p", lifetime(block)),
  );
  if (block.uses.length) {
    const uses = make("ul"), written = new Set(block.rewrittenAt);
    for (const use of block.uses) {
      const item = make("li", "", { title: stepName(use.step) });
      const all = use.nbytes === block.nbytes;
      const verb = !use.writes ? "read" : written.has(use.step) ? "written in place" : "written";
      const what = all ? verb : `${verb}: ${bytesText(use.nbytes)} at +${bytesText(use.offset)}`;
      item.append(make("span", stepLabel(use.step), { class: "name" }), make("span", what, { class: "size" }));
      uses.append(item);
    }
    panel.append(make("h3", "touched by"), uses);
  }
  for (const [title, blocks] of [["made from", arena.makers(block)], ["makes", arena.readers(block)]]) {
    if (blocks.length) panel.append(make("h3", title), blockList(blocks, arena.largest));
  }
}

function lifetime(block) {
  const end = arena.named ? "to " + stepLabel(block.end - 1) : "until " + stepLabel(block.end);
  return `alive for ${counted(block.end - block.start, "step")}, from ${stepLabel(block.start)} ${end}`;
}

function showTip(block, px, py) {
  const tip = el("tip");
  tip.hidden = !block;
  if (!block) return;
  tip.replaceChildren(make("b", block.id), `${bytesText(block.nbytes)} at ${block.offset.toLocaleString("en")}`, make("br"), lifetime(block));
  const room = el("plot").clientWidth;
  tip.style.left = px + tip.offsetWidth + 24 > room ? px - tip.offsetWidth - 12 + "px" : px + 14 + "px";
  tip.style.top = Math.max(py - tip.offsetHeight - 8, 0) + "px";
}

function listBlocks() {
  const box = el("listing").querySelector("div");
  box.replaceChildren();
  if (!el("listing").open) return;
  const table = make("table"), head = make("tr");
  for (const name of ["block", "offset", "bytes", "from", "to", ...(arena.named ? ["kind", "what"] : [])]) {
    head.append(make("th", name));
  }
  table.append(head);
  for (const b of [...arena.blocks].sort((a, c) => a.start - c.start || a.offset - c.offset)) {
    const row = make("tr");
    row.append(make("td", b.id), make("td", b.offset.toLocaleString("en"), { class: "number" }),
      make("td", b.nbytes.toLocaleString("en"), { class: "number" }), make("td", stepName(b.start)),
      make("td", stepName(arena.named ? b.end - 1 : b.end)));
    if (arena.named) row.append(make("td", b.kind), make("td", b.what));
    table.append(row);
  }
  box.append(table);
}

function listen() {
  const canvas = el("canvas");
  let drag = null;
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = point(event);
    if (drag) {
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      if (drag.moved || Math.hypot(dx, dy) > 3) {
        chart.pan(dx, chart.areaAt(px, py) === "steps" ? 0 : dy);
        drag = { x: event.clientX, y: event.clientY, moved: true };
        canvas.classList.add("moving");
      }
    }
    const block = drag?.moved ? null : chart.blockUnder(px, py), step = chart.stepUnder(px);
    showTip(block, px, py);
    if (step !== chart.show.step && !chart.show.chosen) showStep(step ?? arena.peakStep);
    chart.show.hover = block;
    chart.show.step = step;
    redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    canvas.classList.remove("moving");
    if (drag && !drag.moved) choose(chart.blockUnder(...point(event)));
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => {
    chart.show.hover = chart.show.step = null;
    showTip(null);
    if (!chart.show.chosen) showStep(arena.peakStep);
    redraw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [px, py] = point(event);
    if (event.shiftKey) chart.pan(-(event.deltaX || event.deltaY), 0);
    else chart.zoom(px, py, Math.exp(Math.max(-120, Math.min(120, event.deltaY)) / 400), chart.areaAt(px, py));
    redraw();
  }, { passive: false });
  canvas.addEventListener("dblclick", fit);
  el("fit").onclick = fit;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      el("search").value = "";
      search();
      choose(null);
    }
    if (event.target.closest("input, select")) return;
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (steps && event.target === canvas) chart.pan(...steps);
    else if (event.key === "+" || event.key === "-") chart.zoom((LEFT + chart.right) / 2, (TOP + chart.floor) / 2, event.key === "+" ? 0.8 : 1.25, "blocks");
    else if (event.key === "0") chart.fit();
    else if (event.key === "/") el("search").focus();
    else return;
    event.preventDefault();
    redraw();
  });
  el("search").oninput = search;
  el("search").onkeydown = (event) => event.key === "Enter" && nextMatch(event.shiftKey ? -1 : 1);
  el("colour").onchange = () => {
    chart.colour = el("colour").value;
    showLegend();
    choose(chart.show.chosen);
  };
  el("scale").onchange = () => {
    chart.scale = el("scale").value;
    fit();
  };
  el("listing").ontoggle = listBlocks;
  new ResizeObserver(() => {
    chart.resize();
    chart.draw();
  }).observe(el("plot"));
  DARK.addEventListener("change", () => {
    showLegend();
    redraw();
  });
}

function fit() {
  chart.fit();
  redraw();
}

arenas.forEach((one, number) => {
  const button = make("button", [one.device, one.scope].filter(Boolean).join(" · ") || "plan");
  button.onclick = () => {
    openArena(number);
    showLegend();
  };
  el("arenas").append(button);
});
el("arenas").hidden = arenas.length < 2 && !arenas[0].device;
openArena(0);
showLegend();
listen();
