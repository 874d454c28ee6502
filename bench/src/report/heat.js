// Heat maps: a row a transaction, ratios to the baseline.

// Faster is green, slower red; a factor of three is as strong as it gets.
const heat = (ratio) => {
  const strength = Math.min(Math.abs(Math.log(ratio)) / Math.log(3), 1);
  const faster = ratio >= 1;
  const [hue, saturation] = faster ? [152, 55] : [14, 78];
  const plain = dark() ? 15 : 97;
  const strong = dark() ? (faster ? 27 : 33) : faster ? 60 : 70;
  const light = plain + (strong - plain) * strength;
  return `hsl(${hue} ${Math.round(saturation * (0.12 + 0.88 * strength))}% ${light.toFixed(1)}%)`;
};
const times = (ratio) => (ratio < 99.95 ? ratio.toFixed(2) : ratio.toFixed(0));

// One number of threads of one series.
const heatCell = (query, cell, series, among) => {
  const found = compared(cell, series);
  const name = `${query.name}, ${data.series[series].label}${cell ? ", " + many(cell.threads) : ""}`;
  if (found.state === "absent") return element("td", { class: "absent" }, "·");
  if (found.state === "void") return element("td", { class: "void", title: `${name}\n${found.why}` }, "void");
  const runs = cell.by[series].runs.map((run) => figure(run.rate, query)).join(", ");
  const left = found.mine.left ? `\n${short(found.mine.left)} that were due were never begun: it does not keep up` : "";
  const told = `${name}\n${figure(found.mine.rate, query)} ${query.unit} (runs: ${runs})${left}`;
  if (found.state === "alone") return element("td", { class: "alone", title: told }, figure(found.mine.rate, query));
  const made = element("td", { title: `${told}\n${found.ratio.toFixed(3)} of the baseline${found.tie ? ", a tie" : ""}` }, times(found.ratio));
  if (found.mine.left) made.append("!");
  if (found.tie) made.classList.add("tie");
  else if (series !== baselineOf(cell)) made.style.background = heat(found.ratio);
  if (bestOf(cell, among) === series) made.classList.add("best");
  return made;
};

// All numbers of threads of one series: the geometric mean of what can be compared.
const overall = (cells, series) => {
  const ratios = cells.map((cell) => compared(cell, series)).filter((found) => found.state === "compared");
  return ratios.length ? mean(ratios.map((found) => found.ratio)) : null;
};
const meanCell = (query, cells, series, among) => {
  const all = cells.map((cell) => [cell, compared(cell, series)]);
  const there = all.filter(([, found]) => found.state === "compared");
  const measured = all.filter(([, found]) => found.state !== "absent");
  const name = `${query.name}, ${data.series[series].label}`;
  const lines = measured.map(([cell, found]) => {
    const threads = many(cell.threads);
    if (found.state === "void") return `${threads}: void ${found.why}`;
    const ratio = found.ratio === undefined ? "" : `, ${found.ratio.toFixed(2)} of the baseline${found.tie ? ", a tie" : ""}`;
    return `${threads}: ${figure(found.mine.rate, query)} ${query.unit}${ratio}`;
  });
  const title = [name, ...lines].join("\n");
  if (!measured.length) return element("td", { class: "absent" }, "·");
  if (!there.length) {
    const isVoid = measured.every(([, found]) => found.state === "void");
    return element("td", { class: isVoid ? "void" : "alone", title }, isVoid ? "void" : "–");
  }
  const ratio = overall(cells, series);
  const made = element("td", { title }, times(ratio) + (there.length < measured.length ? "!" : ""));
  if (there.every(([, found]) => found.tie)) made.classList.add("tie");
  else if (there.some(([cell]) => series !== baselineOf(cell))) made.style.background = heat(ratio);
  const highest = Math.max(...among.map((one) => overall(cells, one) ?? 0));
  if (ratio === highest) made.classList.add("best");
  return made;
};

const rowName = (query) => {
  // A name may break after its underscores, which matters on a phone.
  const name = query.name.replaceAll("_", "_\u200b");
  return element("th", { scope: "row", title: query.sql }, name);
};
const meanRow = (body, columns) => {
  const row = body.appendChild(element("tr", { class: "mean" }));
  row.append(element("th", { scope: "row" }, "geometric mean"));
  for (const ratios of columns) {
    if (ratios === null) row.append(element("td", { class: "gap" }));
    else if (!ratios.length) row.append(element("td", {}, "–"));
    else row.append(element("td", { style: `background:${heat(mean(ratios))}` }, times(mean(ratios))));
  }
};

// Workload × transaction, a column an engine, at the number of threads that is chosen.
const drawOverview = () => {
  const table = byId("heat");
  const series = shown();
  const head = element("thead");
  const names = head.appendChild(element("tr"));
  names.append(element("td", {}, "transaction"));
  for (const at of series) names.append(element("th", { class: "name", scope: "col", style: `--c:${colour(at)}` }, data.series[at].label));
  const body = element("tbody");
  const all = series.map(() => []);
  for (const workload of workloads()) {
    const several = workloads().length > 1;
    if (several) {
      const row = body.appendChild(element("tr"));
      row.append(element("th", { class: "group", scope: "rowgroup", colspan: 1 + series.length }, workload));
    }
    const threads = choice.threads === ALL ? ladder(workload) : [Number(choice.threads)];
    for (const query of queries(workload)) {
      const row = body.appendChild(element("tr"));
      row.append(rowName(query));
      const cells = threads.map((count) => cellOf(query, count)).filter((cell) => cell);
      series.forEach((at, column) => {
        row.append(choice.threads === ALL ? meanCell(query, cells, at, series) : heatCell(query, cells[0], at, series));
        for (const found of cells.map((cell) => compared(cell, at))) if (found.state === "compared") all[column].push(found.ratio);
      });
    }
  }
  meanRow(body, all);
  table.replaceChildren(head, body);
  const chosen = data.series.find((one) => one.id === choice.baseline);
  byId("baseline-name").textContent = chosen ? chosen.label : "the best of each cell";
  byId("overview-threads").textContent = choice.threads === ALL ? ", over all numbers of threads" : ` at ${many(Number(choice.threads))}`;
};

// A workload's transactions at every number of threads.
const drawLadder = (table, workload) => {
  const series = shown();
  const threads = ladder(workload);
  const head = element("thead");
  const names = head.appendChild(element("tr"));
  const counts = head.appendChild(element("tr"));
  names.append(element("td"));
  counts.append(element("td", {}, "threads"));
  series.forEach((at, place) => {
    if (place) {
      names.append(element("td", { class: "gap" }));
      counts.append(element("td", { class: "gap" }));
    }
    names.append(element("th", { class: "name", scope: "colgroup", colspan: threads.length, style: `--c:${colour(at)}` }, data.series[at].label));
    for (const count of threads) counts.append(element("th", { scope: "col" }, count));
  });
  const body = element("tbody");
  const columns = series.flatMap((_, place) => [...(place ? [null] : []), ...threads.map(() => [])]);
  for (const query of queries(workload)) {
    const row = body.appendChild(element("tr"));
    row.append(rowName(query));
    series.forEach((at, place) => {
      if (place) row.append(element("td", { class: "gap" }));
      threads.forEach((count, step) => {
        const cell = cellOf(query, count);
        row.append(heatCell(query, cell, at, series));
        const found = compared(cell, at);
        if (found.state === "compared") columns[place * (threads.length + 1) + step].push(found.ratio);
      });
    });
  }
  if (queries(workload).length > 1) meanRow(body, columns);
  table.replaceChildren(head, body);
};
