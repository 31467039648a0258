// The page: which arena is open, search, choice, and what pointer and keys do.

const plan = JSON.parse(document.getElementById("plan").textContent);
const arenas = plan.arenas.map((raw) => new Arena(raw));
const chart = new Chart(el("canvas"), plan.palette);
let arena = null, query = "", matchNumber = -1, asked = false;

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
