// Opens a report in a browser that has no network: screenshots at two widths, light and dark, a print, and
// what axe-core finds. Prints one line; exit status 1 unless the report holds.
import { mkdir, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [report, out, modules, chromium] = process.argv.slice(2);
const require = createRequire(join(resolve(modules), "package.json"));
const puppeteer = require("puppeteer-core");
const axe = require("axe-core").source;
const WIDTHS = [1280, 390];
const THEMES = ["light", "dark"];
// Findings of these kinds do not hold; minor and moderate ones are told.
const GRAVE = ["serious", "critical"];

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const page_url = pathToFileURL(resolve(report)).href;
const browser = await puppeteer.launch({
  executablePath: chromium,
  // Root has no sandbox of its own; the page is ours and reaches nothing.
  args: [...(process.getuid() === 0 ? ["--no-sandbox"] : []), "--disable-background-networking"],
});
const wrong = [];
const told = new Set();
let charts = 0;

const open = async (width, theme, hash = "") => {
  const page = await browser.newPage();
  await page.setOfflineMode(true);
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) wrong.push(`it asks for ${request.url()}`);
  });
  page.on("pageerror", (error) => wrong.push(`its script fails: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") wrong.push(`it complains: ${message.text()}`);
  });
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.goto(page_url + hash, { waitUntil: "load" });
  return page;
};

// The whole page in pieces, since a browser paints no image of any height.
const PIECE = 4000;
const pieces = async (page, width, name) => {
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let from = 0, number = 1; from < height; from += PIECE, number += 1) {
    const clip = { x: 0, y: from, width, height: Math.min(PIECE, height - from) };
    await page.screenshot({ path: join(out, `${name}-${number}.png`), clip, captureBeyondViewport: true });
  }
};

try {
  for (const width of WIDTHS) {
    for (const theme of THEMES) {
      const page = await open(width, theme);
      const name = `${width}-${theme}`;
      await page.screenshot({ path: join(out, `${name}-top.png`) });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      if (wide > width) wrong.push(`at ${width} pixels it is ${wide} wide`);
      // What is folded is looked at, too.
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      // The rows of a long table are alike: nobody, nor axe, goes through thousands of them.
      await page.evaluate(() => document.querySelectorAll("tr:nth-child(n + 40)").forEach((row) => row.remove()));
      await pieces(page, width, name);
      charts = await page.evaluate(() => [...document.querySelectorAll(".plot")].filter((plot) => plot.querySelector("svg path")).length);
      const empty = await page.evaluate(() => document.querySelectorAll(".plot").length);
      if (empty !== charts) wrong.push(`${empty - charts} of ${empty} charts are not drawn`);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      for (const found of violations) {
        const text = `${found.impact}: ${found.id}, ${found.nodes.length} times, first ${found.nodes[0].target.join(" ")}`;
        if (GRAVE.includes(found.impact)) wrong.push(`${name}: ${text} (${found.nodes[0].failureSummary.replace(/\s+/g, " ")})`);
        else told.add(text);
      }
      await page.close();
    }
  }

  // Choices are kept in the address, and an address brings them back.
  const page = await open(WIDTHS[0], THEMES[0]);
  if (await page.$("#baseline")) {
    const last = await page.$eval("#baseline", (control) => control.options[control.options.length - 1].value);
    await page.select("#baseline", last);
    const hash = await page.evaluate(() => location.hash);
    const again = await open(WIDTHS[0], THEMES[0], hash);
    const kept = await again.$eval("#baseline", (control) => control.value);
    if (!hash || kept !== last) wrong.push(`the address ${hash} does not bring the baseline ${last} back`);
    await again.screenshot({ path: join(out, "other-baseline.png") });
  }
  await page.pdf({ path: join(out, "print.pdf"), format: "A4", printBackground: true });
} catch (error) {
  wrong.push(`it can't be looked at: ${error.message}`);
}
await browser.close();

for (const text of told) console.log(`note: ${text}`);
for (const text of new Set(wrong)) console.log(`wrong: ${text}`);
const held = wrong.length === 0;
console.log(
  `${held ? "held" : "NOT HELD"}: ${charts} charts, ${WIDTHS.join(" and ")} pixels, light and dark, without a network; axe-core: ` +
    `${told.size} notes; look at ${out}`,
);
process.exit(held ? 0 : 1);
