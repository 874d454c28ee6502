// Draws the heat map and the charts from the runs in the page. Choices are kept in the address, so a
// link shows what its sender saw.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const METRICS = {
    rate: { title: "Throughput", better: Math.max },
    p50_us: { title: "Median latency, µs", better: Math.min },
    p95_us: { title: "95th percentile latency, µs", better: Math.min },
    p99_us: { title: "99th percentile latency, µs", better: Math.min },
    max_us: { title: "Slowest query, µs", better: Math.min },
  };

  // ---- choices, kept in the address
  const asked = new URLSearchParams(location.hash.slice(1));
  const protocols = [...new Set(data.series.flatMap((s) => s.runs.map((r) => r.protocol)))];
  const known = (value, values, otherwise) => (values.includes(value) ? value : otherwise);
  const ids = data.series.map((s) => s.id);
  const choice = {
    baseline: known(asked.get("baseline"), [...ids, "best"], data.baseline || ids[0]),
    metric: known(asked.get("metric"), Object.keys(METRICS), "rate"),
    protocol: known(asked.get("protocol"), protocols, protocols[0]),
    hidden: new Set((asked.get("hidden") || "").split(",").filter((id) => ids.includes(id))),
    theme: known(asked.get("theme"), ["light", "dark"], null),
  };
  const remember = () => {
    const kept = new URLSearchParams();
    if (choice.baseline !== data.baseline) kept.set("baseline", choice.baseline);
    if (choice.metric !== "rate") kept.set("metric", choice.metric);
    if (choice.protocol !== protocols[0]) kept.set("protocol", choice.protocol);
    if (choice.hidden.size) kept.set("hidden", [...choice.hidden].join(","));
    if (choice.theme) kept.set("theme", choice.theme);
    history.replaceState(null, "", "#" + kept.toString());
  };

  // ---- figures
  const cells = new Map();
  for (const series of data.series) {
    for (const run of series.runs) {
      const key = [series.id, run.protocol, run.workload, run.query, run.threads].join("|");
      if (!cells.has(key)) cells.set(key, new Map());
      cells.get(key).set(run.run, run); // a run done again counts as it was last
    }
  }
  const runsOf = (series, query, threads) => {
    const found = cells.get([series.id, choice.protocol, query.workload, query.name, threads].join("|"));
    return found ? [...found.values()].sort((a, b) => a.run - b.run) : [];
  };
  const valid = (run) => run.errors === 0 && run.wrong === 0 && run.queries > 0;
  const best = (series, query, threads) => {
    const runs = runsOf(series, query, threads);
    if (!runs.length || !runs.every(valid)) return null;
    return runs.reduce((a, b) => (b.rate > a.rate ? b : a));
  };
  const figure = (series, query, threads) => {
    const run = best(series, query, threads);
    return run ? run.rate : null;
  };
  const idOf = (workload, name) => workload + "/" + name;
  const several = new Set(data.queries.map((q) => q.workload)).size > 1;
  const everyRun = () => data.series.flatMap((s) => s.runs).filter((r) => r.protocol === choice.protocol);
  const ladder = () => [...new Set(everyRun().map((r) => r.threads))].sort((a, b) => a - b);
  const queries = () => {
    const there = new Set(everyRun().map((r) => idOf(r.workload, r.query)));
    return data.queries.filter((q) => there.has(idOf(q.workload, q.name)));
  };
  const shown = () => data.series.filter((s) => !choice.hidden.has(s.id));
  const baselineFigure = (query, threads) => {
    if (choice.baseline !== "best") return figure(data.series.find((s) => s.id === choice.baseline), query, threads);
    const all = data.series.map((s) => figure(s, query, threads)).filter((f) => f !== null);
    return all.length ? Math.max(...all) : null;
  };
  const short = (f) => {
    const n = (value, digits) => value.toFixed(digits);
    if (f === 0) return "0";
    if (f < 10) return n(f, 1);
    if (f < 1000) return n(f, 0);
    if (f < 9950) return n(f / 1e3, 1) + "k";
    if (f < 999500) return n(f / 1e3, 0) + "k";
    return n(f / 1e6, 2) + "M";
  };

  // ---- colours
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (series) => css("--" + series.engine);
  const dash = (series) => ["solid", "dashed", "dotted", [8, 3, 2, 3]][series.source % 4];
  const dark = () => root.dataset.theme === "dark";
  const applyTheme = () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = choice.theme || system;
  };
  // Faster is green, slower red; a factor of three is as strong as it gets.
  const heat = (ratio) => {
    const strength = Math.min(Math.abs(Math.log(ratio)) / Math.log(3), 1);
    const [hue, saturation] = ratio >= 1 ? [152, 55] : [14, 78];
    const plain = dark() ? 17 : 97;
    const strong = dark() ? (ratio >= 1 ? 33 : 38) : ratio >= 1 ? 58 : 66;
    const light = plain + (strong - plain) * strength;
    return `hsl(${hue} ${Math.round(saturation * (0.12 + 0.88 * strength))}% ${light.toFixed(1)}%)`;
  };

  // ---- heat map
  const element = (name, attributes = {}, text) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "style") made.style.cssText = value;
      else made.setAttribute(key, value);
    }
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const drawHeat = () => {
    const table = byId("heat");
    table.replaceChildren();
    const threads = ladder();
    const series = shown();
    const head = table.appendChild(element("thead"));
    const names = head.appendChild(element("tr"));
    const counts = head.appendChild(element("tr"));
    names.append(element("th"));
    counts.append(element("th", { style: "text-align:left" }, "query, threads →"));
    series.forEach((s, place) => {
      if (place) {
        names.append(element("th", { class: "gap" }));
        counts.append(element("th", { class: "gap" }));
      }
      names.append(element("th", { class: "name", colspan: threads.length, style: `--c:${colour(s)}` }, s.label));
      for (const count of threads) counts.append(element("th", {}, count));
    });
    const body = table.appendChild(element("tbody"));
    const logs = series.map(() => threads.map(() => []));
    let workload = null;
    for (const query of queries()) {
      if (several && query.workload !== workload) {
        workload = query.workload;
        const row = body.appendChild(element("tr"));
        row.append(element("th", { class: "workload", colspan: 1 + series.length * (threads.length + 1) }, workload));
      }
      const row = body.appendChild(element("tr"));
      // A name may break after its underscores, which matters on a phone.
      row.append(element("th", { title: query.sql }, query.name.replaceAll("_", "_\u200b")));
      const top = threads.map((count) => {
        const all = series.map((s) => figure(s, query, count)).filter((f) => f !== null);
        return all.length ? Math.max(...all) : null;
      });
      series.forEach((s, place) => {
        if (place) row.append(element("td", { class: "gap" }));
        threads.forEach((count, column) => {
          const runs = runsOf(s, query, count);
          const mine = figure(s, query, count);
          const theirs = baselineFigure(query, count);
          if (mine === null || !theirs) {
            const why = (runs.find((r) => r.problem) || {}).problem || "";
            row.append(element("td", runs.length ? { class: "void", title: why } : {}, runs.length ? (mine === null ? "void" : "–") : "·"));
            return;
          }
          const ratio = mine / theirs;
          logs[place][column].push(Math.log(ratio));
          const list = runs.map((r) => short(r.rate)).join(", ");
          row.append(element("td", {
            style: `background:${heat(ratio)}`,
            class: mine === top[column] ? "best" : "",
            title: `${query.name}, ${s.label}, ${count} threads\n${short(mine)} ${query.unit} (runs: ${list})\n${ratio.toFixed(3)} of the baseline`,
          }, ratio.toFixed(2)));
        });
      });
    }
    const mean = body.appendChild(element("tr", { class: "mean" }));
    mean.append(element("th", {}, "geometric mean"));
    series.forEach((s, place) => {
      if (place) mean.append(element("td", { class: "gap" }));
      threads.forEach((count, column) => {
        const found = logs[place][column];
        if (!found.length) return void mean.append(element("td", {}, "–"));
        const ratio = Math.exp(found.reduce((a, b) => a + b, 0) / found.length);
        mean.append(element("td", { style: `background:${heat(ratio)}` }, ratio.toFixed(2)));
      });
    });
    const chosen = data.series.find((s) => s.id === choice.baseline);
    byId("baseline-name").textContent = chosen ? chosen.label : "the best of each cell";
  };

  // ---- charts
  const drawn = new Map();
  const tooltip = (query) => (points) => {
    const threads = points.length ? points[0].value[0] : null;
    const box = element("div", { style: "font-size:12px;line-height:1.5" });
    box.append(element("b", {}, `${threads} thread${threads === 1 ? "" : "s"}`));
    const table = box.appendChild(element("table", { style: "border-spacing:8px 0;margin-left:-8px" }));
    const head = table.appendChild(element("tr"));
    for (const name of ["", query.unit, "all runs", "p50", "p95", "p99 µs"]) head.append(element("td", { style: "opacity:.65" }, name));
    const lines = shown().map((s) => ({ s, runs: runsOf(s, query, threads), top: best(s, query, threads) }));
    lines.sort((a, b) => (b.top ? b.top.rate : -1) - (a.top ? a.top.rate : -1));
    for (const { s, runs, top } of lines) {
      if (!runs.length) continue;
      const row = table.appendChild(element("tr"));
      const name = row.appendChild(element("td"));
      name.append(element("span", { style: `display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:6px;background:${colour(s)}` }));
      name.append(s.label);
      const numbers = top ? [short(top.rate), runs.map((r) => short(r.rate)).join(" "), top.p50_us, top.p95_us, top.p99_us] : ["void", "", "", "", ""];
      for (const number of numbers) row.append(element("td", { style: "text-align:right" }, number));
    }
    return box;
  };
  const option = (query) => {
    const threads = ladder();
    const metric = METRICS[choice.metric];
    const series = [];
    for (const s of shown()) {
      const ours = s.engine === "peregrine";
      const line = [];
      const dots = [];
      for (const count of threads) {
        const top = best(s, query, count);
        if (top) line.push([count, top[choice.metric]]);
        for (const run of runsOf(s, query, count)) if (valid(run)) dots.push([count, run[choice.metric]]);
      }
      series.push({
        name: s.label, type: "line", data: line, symbol: "none", color: colour(s), z: ours ? 4 : 3,
        lineStyle: { width: ours ? 3 : 1.8, type: dash(s) }, emphasis: { disabled: true },
      });
      series.push({
        name: s.label, type: "scatter", data: dots, symbolSize: ours ? 7 : 5.5, color: colour(s), z: ours ? 5 : 3,
        itemStyle: { opacity: 0.8 }, emphasis: { disabled: true },
      });
    }
    const label = { color: css("--soft"), fontSize: 11 };
    return {
      animation: false,
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
      grid: { left: 4, right: 14, top: 14, bottom: 26, containLabel: true },
      tooltip: {
        trigger: "axis", confine: true, formatter: tooltip(query), backgroundColor: css("--card"), borderColor: css("--line"),
        textStyle: { color: css("--ink") }, axisPointer: { type: "line", snap: true, lineStyle: { color: css("--soft"), width: 1 } },
      },
      xAxis: {
        type: "log", logBase: 4, min: threads[0], max: threads[threads.length - 1] > threads[0] ? threads[threads.length - 1] : threads[0] * 4,
        name: "threads", nameLocation: "middle", nameGap: 24, nameTextStyle: label,
        axisLabel: { ...label, customValues: threads }, axisTick: { customValues: threads, lineStyle: { color: css("--line") } },
        axisLine: { lineStyle: { color: css("--line") } }, splitLine: { show: false }, minorSplitLine: { show: false },
      },
      yAxis: {
        type: "value", min: 0, axisLabel: { ...label, formatter: short }, splitNumber: 4,
        splitLine: { lineStyle: { color: css("--grid") } }, name: "", axisLine: { show: false },
      },
      aria: { enabled: true, description: `${metric.title} of ${query.name} against threads, a line an engine` },
      series,
    };
  };
  const drawCharts = () => {
    const place = byId("charts");
    const wanted = queries();
    for (const [id, chart] of drawn) {
      if (!wanted.some((q) => idOf(q.workload, q.name) === id)) {
        chart.dispose();
        drawn.delete(id);
        document.querySelector(`[data-query="${id}"]`).remove();
      }
    }
    for (const query of wanted) {
      const id = idOf(query.workload, query.name);
      if (!drawn.has(id)) {
        const card = place.appendChild(element("div", { class: "card chart", "data-query": id }));
        const title = several ? `${query.workload}: ${query.name}` : query.name;
        card.append(element("h3", {}, `${title}, ${query.unit}`), element("code", {}, query.sql));
        const plot = card.appendChild(element("div", { class: "plot" }));
        drawn.set(id, echarts.init(plot, null, { renderer: "svg" }));
      }
      drawn.get(id).setOption(option(query), true);
    }
    byId("charts-title").textContent = METRICS[choice.metric].title;
  };

  // ---- controls
  const drawChips = () => {
    const place = byId("engines");
    place.replaceChildren();
    for (const series of data.series) {
      const on = !choice.hidden.has(series.id);
      const chip = element("button", { type: "button", "aria-pressed": on, style: `--c:${colour(series)}` }, series.label);
      chip.onclick = () => {
        if (on) choice.hidden.add(series.id);
        else choice.hidden.delete(series.id);
        draw();
      };
      place.append(chip);
    }
  };
  const select = (id, values, name) => {
    const control = byId(id);
    for (const [value, text] of values) control.append(element("option", { value }, text));
    control.value = choice[name];
    control.onchange = () => {
      choice[name] = control.value;
      draw();
    };
  };
  const draw = () => {
    applyTheme();
    drawChips();
    drawHeat();
    drawCharts();
    remember();
  };
  select("baseline", [...data.series.map((s) => [s.id, s.label]), ["best", "the best of each cell"]], "baseline");
  select("metric", Object.entries(METRICS).map(([value, about]) => [value, about.title]), "metric");
  select("protocol", protocols.map((p) => [p, p]), "protocol");
  byId("protocol-choice").hidden = protocols.length < 2;
  byId("theme").onclick = () => {
    choice.theme = dark() ? "light" : "dark";
    draw();
  };
  for (const button of document.querySelectorAll(".copy")) {
    button.onclick = async () => {
      const text = button.previousElementSibling.textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(button.previousElementSibling);
      }
    };
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const fit = () => drawn.forEach((chart) => chart.resize());
  addEventListener("resize", fit);
  addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
    // The page's width on paper; charts must be drawn for it before it is laid out.
    root.classList.add("printing");
    drawHeat();
    drawCharts();
    fit();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    draw();
    fit();
  });
  draw();
})();
