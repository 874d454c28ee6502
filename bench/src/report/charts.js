// Charts of a transaction: by threads, and latencies at one number of them.

const drawn = new Map();
const label = () => ({ color: css("--soft"), fontSize: 11 });
const ours = (series) => data.series[series].engine === "peregrine";
const dash = (series) => ["solid", "dashed", "dotted", [8, 3, 2, 3]][data.series[series].part % 4];
const line = (series, points, more = {}) => ({
  name: data.series[series].label, type: "line", data: points, color: colour(series), z: ours(series) ? 4 : 3,
  lineStyle: { width: ours(series) ? 3 : 1.8, type: dash(series) }, emphasis: { disabled: true }, ...more,
});
const frame = (description, formatter) => ({
  animation: false,
  textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
  grid: { left: 6, right: 16, top: 14, bottom: 26, containLabel: true },
  tooltip: {
    trigger: "axis", confine: true, formatter, backgroundColor: css("--card"), borderColor: css("--line"),
    textStyle: { color: css("--ink") }, axisPointer: { type: "line", snap: true, lineStyle: { color: css("--soft"), width: 1 } },
  },
  aria: { enabled: true, description },
});
const axis = (more) => ({
  nameLocation: "middle", nameGap: 24, nameTextStyle: label(), axisLine: { lineStyle: { color: css("--line") } },
  axisTick: { lineStyle: { color: css("--line") } }, splitLine: { show: false }, minorSplitLine: { show: false }, ...more,
});
const upwards = (more) => ({
  axisLabel: label(), splitNumber: 4, axisLine: { show: false }, splitLine: { lineStyle: { color: css("--grid") } },
  minorSplitLine: { show: false }, ...more,
});

// A small table: rows of a series and its cells, the best first.
const tip = (title, heads, rows) => {
  const box = element("div", { style: "font-size:12px;line-height:1.5" });
  box.append(element("b", {}, title));
  const table = box.appendChild(element("table", { style: "border-spacing:8px 0;margin-left:-8px" }));
  const head = table.appendChild(element("tr"));
  for (const name of ["", ...heads]) head.append(element("td", { style: "opacity:.75" }, name));
  for (const [series, ...cells] of rows) {
    const row = table.appendChild(element("tr"));
    const name = row.appendChild(element("td"));
    name.append(element("span", { style: `display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:6px;background:${colour(series)}` }));
    name.append(data.series[series].label);
    for (const cell of cells) row.append(element("td", { style: "text-align:right" }, cell));
  }
  return box;
};
const byRate = (cell) => {
  const there = shown().filter((series) => cell?.by[series]);
  return there.sort((a, b) => (top(cell, b)?.rate ?? -1) - (top(cell, a)?.rate ?? -1));
};

// A line an engine, by the number of threads.
const byThreads = (query) => {
  const threads = ladder(query.workload);
  const metric = METRICS[choice.metric];
  const series = [];
  for (const at of shown()) {
    const points = [];
    const dots = [];
    for (const count of threads) {
      const measured = cellOf(query, count)?.by[at];
      if (!measured?.top) continue;
      if (measured.top[choice.metric] !== null) points.push([count, measured.top[choice.metric]]);
      for (const run of measured.runs) if (run[choice.metric] !== null) dots.push([count, run[choice.metric]]);
    }
    series.push(line(at, points, { symbol: "none" }));
    series.push({
      name: data.series[at].label, type: "scatter", data: dots, symbolSize: ours(at) ? 7 : 5.5, color: colour(at),
      z: ours(at) ? 5 : 3, itemStyle: { opacity: 0.8 }, emphasis: { disabled: true },
    });
  }
  const formatter = (points) => {
    const count = points.length ? points[0].value[0] : null;
    const cell = cellOf(query, count);
    const rows = byRate(cell).map((at) => {
      const { top: best, runs } = cell.by[at];
      if (!best) return [at, "void", "", "", ""];
      return [at, figure(best.rate, query), runs.map((run) => figure(run.rate, query)).join(" "), time(best.p50_us), time(best.p99_us)];
    });
    return tip(many(count), [query.unit, "all runs", "median", "p99"], rows);
  };
  const last = threads[threads.length - 1];
  return {
    ...frame(`${metric.title} of ${query.name} by threads, a line an engine`, formatter),
    xAxis: axis({
      type: "log", logBase: 4, min: threads[0], max: last > threads[0] ? last : threads[0] * 4, name: "threads",
      axisLabel: { ...label(), customValues: threads }, axisTick: { customValues: threads, lineStyle: { color: css("--line") } },
    }),
    yAxis: upwards({ type: "value", min: 0, axisLabel: { ...label(), formatter: metric.latency ? time : short } }),
    series,
  };
};

// Where there is one number of threads only: a bar an engine, a dot a run.
const bars = (query, cell) => {
  const metric = METRICS[choice.metric];
  const value = (run) => (choice.metric === "rate" && inSeconds(query) ? 1 / run.rate : run[choice.metric]);
  const told = (number) => (metric.latency ? time(number) : inSeconds(query) ? time(number * 1e6) : short(number));
  const there = shown().filter((at) => top(cell, at)).reverse();
  const formatter = (points) => {
    const at = there[points[0].dataIndex];
    return tip(many(cell.threads), [query.unit, "all runs"], [[at, figure(top(cell, at).rate, query), cell.by[at].runs.map((run) => figure(run.rate, query)).join(" ")]]);
  };
  return {
    ...frame(`${metric.title} of ${query.name}, a bar an engine`, formatter),
    xAxis: upwards({ type: "value", min: 0, axisLabel: { ...label(), formatter: told } }),
    yAxis: axis({ type: "category", data: there.map((at) => data.series[at].label), axisLabel: { ...label(), color: css("--ink") } }),
    series: [
      { type: "bar", barMaxWidth: 18, emphasis: { disabled: true }, data: there.map((at) => ({ value: value(top(cell, at)), itemStyle: { color: colour(at) } })) },
      ...there.map((at, row) => ({
        type: "scatter", symbolSize: 6, color: css("--ink"), emphasis: { disabled: true }, itemStyle: { opacity: 0.6 },
        data: cell.by[at].runs.map((run) => [value(run), row]),
      })),
    ],
  };
};

const PERCENTILES = ["p50_us", "p95_us", "p99_us", "max_us"];
const latencies = (query, cell) => {
  const lowest = Math.min(...shown().map((at) => top(cell, at)?.p50_us ?? Infinity));
  const formatter = (points) => {
    const at = PERCENTILES[points[0].dataIndex];
    const rows = byRate(cell).map((series) => [series, ...PERCENTILES.map((name) => time(top(cell, series)?.[name]))]);
    rows.sort((a, b) => (top(cell, a[0])?.[at] ?? Infinity) - (top(cell, b[0])?.[at] ?? Infinity));
    return tip(many(cell.threads), ["median", "p95", "p99", "max"], rows);
  };
  return {
    ...frame(`Latencies of ${query.name} with ${many(cell.threads)}, a line an engine, on a logarithmic axis`, formatter),
    xAxis: axis({ type: "category", data: ["median", "95 %", "99 %", "slowest"], boundaryGap: false, axisLabel: { ...label(), alignMinLabel: "left", alignMaxLabel: "right" } }),
    yAxis: upwards({ type: "log", min: Number.isFinite(lowest) ? 10 ** Math.floor(Math.log10(Math.max(lowest, 1))) : 1, axisLabel: { ...label(), formatter: time } }),
    // A logarithm needs something above zero: what took no whole microsecond stands at one.
    series: shown().filter((at) => top(cell, at)).map((at) => line(at, PERCENTILES.map((name) => Math.max(top(cell, at)[name], 1)), { symbolSize: 5 })),
  };
};

// A line an engine over the seconds of its best run: what was done, or the slowest when latencies are shown.
const overTime = (query, cell) => {
  const { latency } = METRICS[choice.metric];
  const there = shown().filter((at) => cell.by[at]?.over);
  const values = ({ step, points }, of) => points.map((point, at) => [(at + 1) * step, of(point)]);
  const formatter = (points) => {
    const after = points[0].value[0];
    const rows = there.map((at) => {
      const { step, points: all } = cell.by[at].over;
      const [rate, mean, slowest] = all[after / step - 1] ?? [null, null, null];
      return [at, short(rate), time(mean), time(slowest)];
    });
    return tip(`${after} s`, ["a second", "mean", "slowest"], rows);
  };
  return {
    ...frame(`${latency ? "Slowest" : "Transactions"} of ${query.name} in each second with ${many(cell.threads)}`, formatter),
    xAxis: axis({ type: "value", min: 0, name: "seconds", minInterval: 1, axisLabel: label() }),
    yAxis: upwards({ type: "value", min: 0, axisLabel: { ...label(), formatter: latency ? time : short } }),
    series: there.map((at) => line(at, values(cell.by[at].over, (point) => (latency ? point[2] : point[0])), { symbol: "none" })),
  };
};

// The number of threads that latencies are shown at: the one chosen, or the most there are.
const latencyThreads = (query) => {
  const there = ladder(query.workload).filter((count) => cellOf(query, count));
  const chosen = Number(choice.threads);
  return there.includes(chosen) ? chosen : there[there.length - 1];
};

const plot = (card, name, title, option) => {
  let place = card.querySelector(`[data-plot="${name}"]`);
  if (!place) {
    place = card.querySelector(".plots").appendChild(element("figure", { "data-plot": name }));
    place.append(element("figcaption"), element("div", { class: "plot" }));
    drawn.set(place, echarts.init(place.lastChild, null, { renderer: "svg" }));
  }
  place.firstChild.textContent = title;
  drawn.get(place).setOption(option, true);
};
const drawCharts = (place, workload) => {
  const wanted = queries(workload);
  for (const card of [...place.children]) {
    if (wanted.some((query) => query.name === card.dataset.query)) continue;
    for (const figure of card.querySelectorAll("figure")) {
      drawn.get(figure).dispose();
      drawn.delete(figure);
    }
    card.remove();
  }
  for (const query of wanted) {
    let card = [...place.children].find((one) => one.dataset.query === query.name);
    if (!card) {
      card = place.appendChild(element("article", { class: "card chart", "data-query": query.name }));
      card.append(element("h3", {}, query.name));
      if (query.sql && query.sql !== query.name) card.append(element("code", {}, query.sql));
      card.append(element("div", { class: "plots" }));
    }
    const { latency, title } = METRICS[choice.metric];
    const cell = cellOf(query, latencyThreads(query));
    const what = latency ? title : inSeconds(query) ? "seconds, less is better" : query.unit;
    if (ladder(workload).length > 1) plot(card, "threads", `${what}, by threads; a dot a run`, byThreads(query));
    else plot(card, "engines", `${what}, with ${many(cell.threads)}; a dot a run`, bars(query, cell));
    // What is done once a run has one latency, which is its figure.
    if (cell.by.some((measured) => measured?.over)) plot(card, "time", `${latency ? "slowest" : "done"} in each second, with ${many(cell.threads)}`, overTime(query, cell));
    if (!inSeconds(query)) plot(card, "latency", `latencies with ${many(cell.threads)}`, latencies(query, cell));
  }
};
// At once, and not with the next frame: before a print there is none.
const fit = () =>
  drawn.forEach((chart) => {
    chart.resize();
    chart.getZr().flush();
  });
