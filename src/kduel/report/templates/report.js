"use strict";
// The page is complete without this: it tells a value at which one points, enlarges a chart, filters, and opens what a link leads to.
(() => {
  const tip = document.getElementById("tip");

  // Every dot of a chart with its place in it, 0 to 1, and its cell in the table of values.
  const table = document.querySelector("table.every");
  const read = (chart) => {
    if (!table) return [];
    const metric = chart.closest("details").querySelector(".name").textContent;
    const blocks = [...table.tHead.rows[0].cells].slice(2).map((cell) => cell.textContent);
    const rows = [...table.tBodies[0].rows];
    const first = rows.findIndex((row) => row.cells[0].scope && row.cells[0].textContent === metric);
    const arms = (first < 0 ? [] : rows.slice(first, first + rows[first].cells[0].rowSpan))
      .map((row) => [...row.cells].slice(row.cells[0].scope ? 1 : 0))
      .map(([name, ...values]) => values
        .map((cell, index) => ({ contender: name.textContent, block: blocks[index], value: cell.textContent }))
        .filter((one) => one.value !== "–"))
      .filter((values) => values.length);
    return [...chart.querySelectorAll("path.dots")].flatMap((path, arm) =>
      path.getAttribute("d").split("M").slice(1).map((at, index) => {
        const [x, y] = at.split(/[ h]/).map((number) => Number(number) / 1000);
        return { x, y, told: arms[arm][index] };
      }));
  };
  const known = new Map();

  const nearest = (chart, event) => {
    if (!known.has(chart)) known.set(chart, read(chart));
    const box = chart.querySelector("svg").getBoundingClientRect();
    let best = null, least = 20;
    for (const dot of known.get(chart)) {
      const far = Math.hypot(box.x + dot.x * box.width - event.clientX, box.y + dot.y * box.height - event.clientY);
      if (far < least) [best, least] = [dot.told, far];
    }
    return best;
  };

  document.querySelectorAll("svg.chart.values").forEach((chart) => {
    chart.addEventListener("pointermove", (event) => {
      const told = nearest(chart, event);
      tip.hidden = !told;
      if (!told) return;
      tip.replaceChildren(...Object.entries(told).map(([name, text]) => {
        const line = document.createElement("div");
        const label = document.createElement("b");
        label.textContent = name;
        line.append(label, text);
        return line;
      }));
      const box = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
      tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
    });
    chart.addEventListener("pointerleave", () => { tip.hidden = true; });
  });
  document.querySelectorAll("svg.chart").forEach((chart) =>
    chart.addEventListener("click", () => chart.classList.toggle("large")));

  // A mark leads to its finding, folded away or not.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let fold = target.querySelector(":scope > details") || target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  const filter = document.getElementById("filter");
  if (!filter) return;
  filter.closest("p").hidden = false;
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    const metrics = [...document.querySelectorAll("details.metric[id]")];
    metrics.forEach((metric) => {
      metric.hidden = !metric.querySelector("summary").textContent.toLowerCase().includes(wanted);
    });
    const shown = metrics.filter((metric) => !metric.hidden);
    document.getElementById("matches").textContent = `${shown.length} of ${metrics.length}`;
    shown.forEach((metric) => {
      if (wanted) metric.parentElement.closest("details")?.setAttribute("open", "");
      if (wanted && shown.length <= 4) metric.open = true;
    });
  });
})();
