// The controls, and drawing everything that they choose.

const applyTheme = () => {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = choice.theme || system;
};
const drawChips = () => {
  const chips = data.series.map((series, at) => {
    const on = !choice.hidden.has(series.id);
    const chip = element("button", { type: "button", "aria-pressed": on, style: `--c:${colour(at)}` }, series.label);
    chip.onclick = () => {
      if (on) choice.hidden.add(series.id);
      else choice.hidden.delete(series.id);
      draw();
      byId("engines").children[at].focus();
    };
    return chip;
  });
  byId("engines").replaceChildren(...chips);
};
const drawFigures = () => {
  drawOverview();
  for (const section of document.querySelectorAll("[data-workload]")) {
    const name = section.dataset.workload;
    section.hidden = !queries(name).length;
    drawLadder(section.querySelector(".by-threads"), name);
    drawCharts(section.querySelector(".charts"), name);
  }
};
const drawRuns = () => {
  const heads = ["workload", "transaction", "engine", "protocol", "threads", "run", "figure", "unit", "median", "p95", "p99", "max",
    "server CPU µs", "client CPU µs", "charged", "done", "conflicts", "rolled back", "never begun", "errors", "wrong"];
  const texts = [0, 1, 2, 3, 7];
  const kind = (at) => (texts.includes(at) ? {} : { class: "n" });
  const head = element("thead");
  const names = head.appendChild(element("tr"));
  heads.forEach((name, at) => names.append(element("th", { scope: "col", ...kind(at) }, name)));
  const body = element("tbody");
  for (const cell of data.cells) {
    const query = data.queries[cell.query];
    cell.by.forEach((measured, series) => {
      for (const run of measured ? measured.runs : []) {
        const row = body.appendChild(element("tr", run.errors || run.wrong || !run.done ? { class: "differs" } : {}));
        const values = [query.workload, query.name, data.series[series].label, cell.protocol, cell.threads, run.run, run.rate, query.unit,
          run.p50_us, run.p95_us, run.p99_us, run.max_us, run.server_us, run.client_us, run.charged, run.done, run.conflicts, run.rolled_back, run.left, run.errors, run.wrong];
        values.forEach((value, at) => row.append(element("td", kind(at), value ?? "")));
      }
    });
  }
  byId("runs").querySelector("table").replaceChildren(head, body);
};
const draw = () => {
  applyTheme();
  drawChips();
  drawFigures();
  keepChoices();
};
const goTo = (id, smooth) => {
  const place = id && byId(id);
  if (place) place.scrollIntoView({ behavior: smooth ? "smooth" : "auto" });
};

// ---- controls
const selects = {
  baseline: [...data.series.map((series) => [series.id, series.label]), [BEST, "the best of each cell"]],
  threads: [[ALL, "all"], ...everyThreads.map((count) => [count, count])],
  metric: Object.entries(METRICS).map(([name, metric]) => [name, metric.title]),
  protocol: protocols.map((protocol) => [protocol, protocol]),
};
for (const [id, values] of Object.entries(selects)) {
  const control = byId(id);
  for (const [value, text] of values) control.append(element("option", { value }, text));
  control.onchange = () => {
    choice[id] = control.value;
    draw();
  };
}
const showChoices = () => {
  for (const id of Object.keys(selects)) byId(id).value = choice[id];
};
byId("protocol-choice").hidden = protocols.length < 2;
byId("theme").onclick = () => {
  choice.theme = dark() ? "light" : "dark";
  draw();
};
for (const link of document.querySelectorAll(".links a")) {
  link.onclick = (event) => {
    event.preventDefault();
    choice.at = new URLSearchParams(link.hash.slice(1)).get("at");
    keepChoices();
    goTo(choice.at, true);
  };
}
for (const button of document.querySelectorAll(".copy")) {
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
    }
  };
}
byId("runs").ontoggle = () => drawRuns();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("resize", fit);
addEventListener("hashchange", () => {
  readChoices();
  showChoices();
  draw();
  goTo(choice.at);
});
addEventListener("beforeprint", () => {
  root.dataset.theme = "light";
  // The page's width on paper; charts must be drawn for it before it is laid out.
  root.classList.add("printing");
  drawFigures();
  fit();
});
addEventListener("afterprint", () => {
  root.classList.remove("printing");
  draw();
  fit();
});
showChoices();
draw();
goTo(choice.at);
