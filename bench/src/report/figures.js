// The figures in the page, and the choices of what is shown. Choices are kept in the address, so a link
// shows what its sender saw. What is best and what ties was told by the program that made the page.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const byId = (id) => document.getElementById(id);

// ---- the cells, by query, protocol and number of threads
const BEST = "best";
const ALL = "all";
for (const cell of data.cells) {
  for (const measured of cell.by) {
    if (!measured) continue;
    measured.runs = measured.runs.map((numbers) => Object.fromEntries(data.columns.map((name, at) => [name, numbers[at]])));
    measured.top = measured.best === null ? null : measured.runs[measured.best];
  }
}
const places = new Map(data.cells.map((cell) => [[cell.query, cell.protocol, cell.threads].join(), cell]));
const cellOf = (query, threads) => places.get([data.queries.indexOf(query), choice.protocol, threads].join());
const protocols = [...new Set(data.cells.map((cell) => cell.protocol))];
const ofProtocol = () => data.cells.filter((cell) => cell.protocol === choice.protocol);
const ladder = (workload) => {
  const cells = ofProtocol().filter((cell) => !workload || data.queries[cell.query].workload === workload);
  return [...new Set(cells.map((cell) => cell.threads))].sort((a, b) => a - b);
};
const queries = (workload) => {
  const there = new Set(ofProtocol().map((cell) => cell.query));
  return data.queries.filter((query, at) => there.has(at) && (!workload || query.workload === workload));
};
const workloads = () => [...new Set(queries().map((query) => query.workload))];

// ---- what can be chosen
const METRICS = {
  rate: { title: "Throughput", latency: false },
  charged: { title: "Throughput, what was put off charged", latency: false },
  p50_us: { title: "Median latency", latency: true },
  p95_us: { title: "95th percentile latency", latency: true },
  p99_us: { title: "99th percentile latency", latency: true },
  max_us: { title: "Slowest transaction", latency: true },
  server_us: { title: "Server's processor time each", latency: true },
  client_us: { title: "Client's processor time each", latency: true },
};
if (!data.cells.some((cell) => cell.by.some((measured) => measured?.runs.some((run) => run.charged !== null)))) delete METRICS.charged;
const ids = data.series.map((series) => series.id);
const everyThreads = [...new Set(data.cells.map((cell) => cell.threads))].sort((a, b) => a - b).map(String);
const usual = { baseline: ids[data.baseline ?? 0], threads: ALL, metric: "rate", protocol: protocols[0] };
const choice = {};
const readChoices = () => {
  const asked = new URLSearchParams(location.hash.slice(1));
  const known = (name, values) => (values.includes(asked.get(name)) ? asked.get(name) : usual[name]);
  choice.baseline = known("baseline", [...ids, BEST]);
  choice.threads = known("threads", [ALL, ...everyThreads]);
  choice.metric = known("metric", Object.keys(METRICS));
  choice.protocol = known("protocol", protocols);
  choice.hidden = new Set((asked.get("hidden") || "").split(",").filter((id) => ids.includes(id)));
  choice.theme = ["light", "dark"].find((theme) => theme === asked.get("theme"));
  choice.at = asked.get("at");
};
const keepChoices = () => {
  const kept = new URLSearchParams();
  for (const name of Object.keys(usual)) if (choice[name] !== usual[name]) kept.set(name, choice[name]);
  if (choice.hidden.size) kept.set("hidden", [...choice.hidden].join(","));
  if (choice.theme) kept.set("theme", choice.theme);
  if (choice.at) kept.set("at", choice.at);
  history.replaceState(null, "", "#" + kept.toString());
};
readChoices();

const shown = () => data.series.map((_, at) => at).filter((at) => !choice.hidden.has(data.series[at].id));

// ---- a cell's figures
const top = (cell, series) => cell?.by[series]?.top ?? null;
const bestOf = (cell, among) => {
  const there = among.filter((series) => top(cell, series));
  return there.length ? there.reduce((a, b) => (top(cell, b).rate > top(cell, a).rate ? b : a)) : null;
};
const ties = (cell, one, other) => cell.ties.some(([a, b]) => (a === one && b === other) || (a === other && b === one));
// The series that others are compared with in a cell.
const baselineOf = (cell) => (choice.baseline === BEST ? bestOf(cell, ids.map((_, at) => at)) : ids.indexOf(choice.baseline));
// A series in a cell beside the baseline.
const compared = (cell, series) => {
  const measured = cell?.by[series];
  if (!measured) return { state: "absent" };
  const mine = measured.top;
  if (!mine) return { state: "void", why: measured.problem || "" };
  const other = baselineOf(cell);
  const theirs = other === null ? null : top(cell, other);
  if (!theirs || !theirs.rate) return { state: "alone", mine };
  return { state: "compared", mine, ratio: mine.rate / theirs.rate, tie: other !== series && ties(cell, series, other) };
};
const mean = (ratios) => Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);

// ---- as people read them
const short = (figure) => {
  if (figure === null || figure === undefined) return "";
  if (figure === 0) return "0";
  if (figure < 10) return figure.toFixed(1);
  if (figure < 1000) return figure.toFixed(0);
  if (figure < 9950) return (figure / 1e3).toFixed(1) + "k";
  if (figure < 999500) return (figure / 1e3).toFixed(0) + "k";
  return (figure / 1e6).toFixed(2) + "M";
};
const time = (us) => {
  if (us === null || us === undefined) return "";
  if (us === 0) return "0";
  if (us < 1000) return `${us < 10 ? Number(us.toFixed(1)) : us.toFixed(0)} µs`;
  if (us < 1e6) return `${Number((us / 1e3).toPrecision(3))} ms`;
  return `${Number((us / 1e6).toPrecision(3))} s`;
};
// Of what is done once a run the time is the figure: the inverse of its rate.
const inSeconds = (query) => query.unit === "s";
const figure = (rate, query) => {
  if (!inSeconds(query)) return short(rate);
  const seconds = 1 / rate;
  return seconds < 0.0995 ? seconds.toFixed(4) : seconds < 9.95 ? seconds.toFixed(2) : seconds.toFixed(1);
};
const many = (count) => `${count} thread${count === 1 ? "" : "s"}`;

// ---- elements
const element = (name, attributes = {}, text) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") made.style.cssText = value;
    else made.setAttribute(key, value);
  }
  if (text !== undefined) made.textContent = text;
  return made;
};
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const colour = (series) => css("--" + data.series[series].engine) || css("--soft");
const dark = () => root.dataset.theme === "dark";
