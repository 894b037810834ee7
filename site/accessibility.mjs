/**
 * Prints Lighthouse's accessibility score of pages in Chromium, in light and dark colours, wide and narrow. Exits with 1 if a score
 * is under 95.
 *
 * usage: node site/accessibility.mjs [--token TOKEN] [URL...]
 *   --token TOKEN   token of a gateway, for pages of `swefarm serve`
 *   URL             page that has a heading; default: pages of the built site, one of each form
 */
import { parseArgs } from 'node:util';
import { snapshot } from 'lighthouse';
import puppeteer from 'puppeteer-core';
import { serve } from 'vitepress';

const MINIMUM = 95;
const SITE = [
  '',
  'docs/',
  'docs/quickstart.html',
  'docs/configuration.html',
  'docs/choosing.html',
  'bench/',
  'GLOSSARY.html',
].concat('source/helm/swefarm/values.yaml.html');
const VIEWS = [
  { scheme: 'light', width: 1360 },
  { scheme: 'dark', width: 1360 },
  { scheme: 'dark', width: 390 },
];

const { values, positionals } = parseArgs({ options: { token: { type: 'string' } }, allowPositionals: true });
const server = positionals.length === 0 ? await serve({ root: import.meta.dirname, port: 0 }) : null;
const urls = server
  ? SITE.map((path) => `http://localhost:${server.server.address().port}/${path}`)
  : positionals;
const browser = await puppeteer.launch({
  executablePath: process.env.SWEFARM_TEST_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
try {
  for (const url of urls) for (const view of VIEWS) await audit(url, view);
} finally {
  await browser.close();
  server?.server.close();
}

async function audit(url, { scheme, width }) {
  const page = await browser.newPage();
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  if (values.token !== undefined) {
    await page.evaluateOnNewDocument((token) => sessionStorage.setItem('swefarm.token', token), values.token);
  }
  await page.goto(url, { waitUntil: 'networkidle2', timeout: 120_000 });
  await page.waitForSelector('h1', { timeout: 120_000 });
  const { lhr } = await snapshot(page, {
    flags: { onlyCategories: ['accessibility'], screenEmulation: { disabled: true }, formFactor: 'desktop' },
  });
  await page.close();
  const score = Math.round((lhr.categories.accessibility.score ?? 0) * 100);
  console.log(`${score} ${url} (${scheme}, ${width} px)`);
  if (score < MINIMUM) process.exitCode = 1;
  for (const { id, weight } of lhr.categories.accessibility.auditRefs) {
    const items = lhr.audits[id].score === 0 && weight > 0 ? (lhr.audits[id].details?.items ?? [{}]) : [];
    if (items.length > 0)
      console.log(
        `    ${id}, ${items.length} elements: ${items[0].node?.snippet} ${items[0].node?.explanation}`,
      );
  }
}
