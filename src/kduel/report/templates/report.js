"use strict";
// Draws a plot when it comes near the screen and drops it when it is far away, so that a page of hundreds stays quick.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const trialAt = new Map(data.trials.map((trial) => [`${trial[1]} ${trial[3]}`, trial]));
  const views = new Map();

  // The page's strings only ever take the place of a placeholder as values: never inside an expression.
  const filled = (template, unit) =>
    JSON.parse(JSON.stringify(template), (_, value) =>
      value === "@unit@" ? unit : Array.isArray(value) && value[0] === "@names@" ? data.names : value);

  const jitter = (index, arm) => (((index + 1) * 0.6180339887 + arm * 0.37) % 1) * 2 - 1;

  const valueRows = (metric) =>
    metric.values.flatMap((column, arm) =>
      column.flatMap((value, index) => {
        if (value === null) return [];
        const block = data.blocks[index];
        const trial = trialAt.get(`${block} ${arm}`);
        return [{
          c: data.names[arm], b: block, v: value, s: String(Number(value.toPrecision(10))), j: jitter(index, arm),
          t: trial ? trial[0] : `number ${block}`, p: trial ? trial[2] + 1 : index + 1,
        }];
      }));

  const sliceRows = (metric) =>
    metric.slices.map(([arm, block, began, value, waited]) => {
      const trial = trialAt.get(`${block} ${arm}`);
      return {
        c: data.names[arm], b: block, v: value, s: String(Number(value.toPrecision(10))), p: began, w: waited,
        t: trial ? trial[0] : `number ${block}`,
      };
    });

  const spellRows = () =>
    data.metrics.flatMap((metric) => {
      const usual = data.names.map((_, arm) => {
        const values = metric.slices.filter((row) => row[0] === arm).map((row) => row[3]).sort((a, b) => a - b);
        return values[Math.floor(values.length / 2)];
      });
      return metric.slices.flatMap(([arm, block, began, value, waited]) => {
        const trial = trialAt.get(`${block} ${arm}`);
        if (!trial || began === null || !(value / usual[arm] > 0)) return [];
        return [{
          t: trial[0], n: trial[2] + 1, m: metric.name, p: began, w: waited, s: String(Number(value.toPrecision(10))),
          d: 100 * Math.log(metric.lower ? value / usual[arm] : usual[arm] / value),
        }];
      });
    });

  const courseRows = () =>
    data.trials
      .filter((trial) => trial[3] >= 0 && trial[5] !== null)
      .map((trial) => ({ t: trial[0], p: trial[2] + 1, c: data.names[trial[3]], s: trial[4], v: trial[5], w: trial[6] }));

  const hostRows = () =>
    data.trials
      .filter((trial) => trial[3] >= 0 && trial[7] !== null)
      .map((trial) => ({ t: trial[0], p: trial[2] + 1, c: data.names[trial[3]], v: trial[7], o: trial[8] }));

  const plots = {
    forest: (number) => [data.forests[number], null],
    strip: (number) => {
      const metric = data.metrics[number];
      const most = Math.max(...metric.values.map((column) => column.filter((value) => value !== null).length));
      return [filled(most >= data.box_from ? data.strip : data.points, metric.unit), valueRows(metric)];
    },
    order: (number) => [filled(data.order, data.metrics[number].unit), valueRows(data.metrics[number])],
    slices: (number) => [filled(data.slices, data.metrics[number].unit), sliceRows(data.metrics[number])],
    spells: () => [data.spells, spellRows()],
    waits: () => [data.waits, spellRows()],
    course: () => [filled(data.course, ""), courseRows()],
    host: () => [filled(data.host, ""), hostRows()],
    matrix: (number) => [data.matrix[number], null],
    tails: (number) => [data.tails[number], null],
    factors: (number) => [data.factors[number], null],
    tradeoffs: (number) => [data.tradeoffs[number], null],
  };

  const showTip = (_, event, item, value) => {
    tip.hidden = !value || typeof value !== "object";
    if (tip.hidden) return;
    tip.replaceChildren(...Object.entries(value).map(([name, text]) => {
      const line = document.createElement("div");
      const label = document.createElement("b");
      label.textContent = name;
      line.append(label, String(text));
      return line;
    }));
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
  };

  // The drawing library is unpacked when the first plot is looked at.
  let library = null;
  const loadLibrary = async () => {
    const packed = Uint8Array.from(atob(document.getElementById("vega").textContent), (byte) => byte.charCodeAt(0));
    const code = document.createElement("script");
    code.textContent = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    document.head.append(code);
  };

  function draw(place) {
    if (views.has(place)) return;
    const [spec, rows] = plots[place.dataset.plot](Number(place.dataset.number));
    if (rows) {
      if (!rows.length) {
        place.textContent = "No value.";
        place.dataset.drawn = 0;
        return;
      }
      const table = spec.data.find((one) => one.name === "rows");
      table.values = rows;
    }
    const options = { mode: "vega", renderer: "svg", actions: false, defaultStyle: false, tooltip: showTip };
    views.set(place, null);
    // Vega names the element it draws in; the outer one keeps our description of the plot.
    const inner = document.createElement("div");
    inner.setAttribute("aria-hidden", "true");
    library ??= loadLibrary();
    library.then(() => {
      place.replaceChildren(inner);
      return vegaEmbed(inner, spec, options);
    }).then((made) => {
      if (!views.has(place)) {
        made.finalize();
        return;
      }
      views.set(place, made);
      place.dataset.drawn = rows ? rows.length : "all";
      place.style.minHeight = `${place.offsetHeight}px`;
    });
  }

  function drop(place) {
    views.get(place)?.finalize();
    views.delete(place);
    if (place.dataset.drawn) place.replaceChildren();
    delete place.dataset.drawn;
  }

  // A forest's height is known before it is drawn: what stands below shall not jump.
  document.querySelectorAll("[data-plot=forest]").forEach((place) => {
    const rows = data.forests[Number(place.dataset.number)].data.find((one) => one.name === "rows").values.length;
    place.style.minHeight = `${rows * 46 + 42}px`;
  });
  const near = new IntersectionObserver(
    (entries) => entries.forEach((entry) => entry.isIntersecting && draw(entry.target)), { rootMargin: "600px" });
  const far = new IntersectionObserver(
    (entries) => entries.forEach((entry) => !entry.isIntersecting && drop(entry.target)), { rootMargin: "4000px" });
  document.querySelectorAll(".plot").forEach((place) => {
    near.observe(place);
    far.observe(place);
  });
  addEventListener("beforeprint", () => {
    far.disconnect();
    document.querySelectorAll(".plot").forEach((place) => place.offsetWidth && draw(place));
  });

  // Every value as a table, made when it is opened.
  const cell = (kind, text, scope) => {
    const made = document.createElement(kind);
    made.textContent = text;
    if (scope) made.scope = scope; else made.className = "number";
    return made;
  };
  document.querySelectorAll("details[data-values]").forEach((details) =>
    details.addEventListener("toggle", () => {
      const place = details.querySelector(".scroll");
      if (!details.open || place.firstChild) return;
      const metric = data.metrics[Number(details.dataset.values)];
      const table = document.createElement("table");
      table.className = "plain";
      const head = table.createTHead().insertRow();
      head.append(cell("th", "block", "col"), ...data.names.map((name) => cell("th", name, "col")));
      const body = table.createTBody();
      data.blocks.forEach((block, index) =>
        body.insertRow().append(cell("th", block, "row"), ...metric.values.map((column) => cell("td", column[index] ?? "–"))));
      place.append(table);
    }));

  // A mark leads to its finding, folded away or not.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  const filter = document.getElementById("filter");
  filter?.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    const metrics = [...document.querySelectorAll("details.metric")];
    metrics.forEach((metric) => {
      metric.hidden = !metric.querySelector("summary").textContent.toLowerCase().includes(wanted);
    });
    const shown = metrics.filter((metric) => !metric.hidden);
    document.getElementById("matches").textContent = `${shown.length} of ${metrics.length}`;
    if (wanted && shown.length <= 4) shown.forEach((metric) => { metric.open = true; });
  });
})();
