// What stands beside the chart: the facts of the arena, the legend, the panel of a step or a block, the tip, the table.

const el = (id) => document.getElementById(id);

function make(tag, text = "", attributes = {}) {
  const node = document.createElement(tag);
  node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
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
