/** Tests the trends on the page in a real Chromium: over versions and time, with runs side by side, and at all sizes. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { testFarm } from '@swefarm/runs/test/farm.ts';
import { type MadeRunOptions, makeRun } from '@swefarm/testkit';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { gatewayOver, openPage, PATIENT, TOKEN } from './browser.ts';

const SLOW = { timeout: 300_000 };
const HOUR = 3_600_000;
const BEGUN = Date.UTC(2026, 0, 10, 8);

/** Returns the ends of rollouts: `each` rollouts for each policy version, and one version an hour. */
const ends =
  (first: number, each: number): NonNullable<MadeRunOptions['ends']> =>
  (at) => ({
    policy_version: `step-${first + Math.floor(at / each)}`,
    finished_at: BEGUN + (first + at / each) * HOUR,
  });

/** Writes a screenshot if `SWEFARM_TEST_PICTURES=FOLDER` is set, to inspect changes of the page. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.SWEFARM_TEST_PICTURES;
  if (folder === undefined) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

test('figures over versions of all runs as one, each run by itself, and side by side', SLOW, async () => {
  const farm = await testFarm();
  const one = await makeRun(farm, { instances: 20, groupSize: 8, ends: ends(1, 40) });
  const two = await makeRun(farm, { instances: 20, groupSize: 8, ends: ends(5, 40) });
  const { url } = await gatewayOver(farm);
  const page = await openPage(url, TOKEN);
  await page.goto(`${url}/ui/`);
  await page.getByRole('link', { name: 'Trends over versions and time' }).click();
  for (const name of ['Resolve rate', 'Mean reward', 'Mean turns', 'Mean tokens', 'Failures']) {
    const chart = page.getByRole('img', { name: new RegExp(`^${name}: .* over policy version$`) });
    await chart.waitFor();
    // One line has eight versions, and both axes have labels.
    expect(await chart.locator('circle').count()).toBe(8);
    expect(await chart.locator('.axis').count()).toBe(2);
  }
  await picture(page, 'together');
  const rates = page.getByRole('img', { name: /^Resolve rate/ });
  expect(await rates.textContent()).toMatch(/step-1.*step-8/s);
  await rates.hover();
  await page.getByText(/^step-[45], 40 rollouts: \d+(\.\d)? %$/).waitFor();

  await page.getByRole('button', { name: 'A line for each run' }).click();
  await expect.poll(() => rates.locator('.series').count(), PATIENT).toBe(2);
  const beside = page.getByRole('region', { name: 'Runs side by side' });
  for (const { record } of [one, two]) await beside.getByRole('link', { name: record.run_id }).waitFor();
  expect(await beside.getByRole('row', { name: /^Versions/ }).textContent()).toMatch(
    /step-1 to step-4.*step-5 to step-8/,
  );
  await page.getByRole('combobox').selectOption('time');
  await page
    .getByRole('img', { name: 'Mean turns: turns of judged over time since the first result' })
    .waitFor();
  await picture(page, 'each');
  const dark = await openPage(url, TOKEN, 'dark');
  await dark.goto(page.url());
  await dark.getByRole('region', { name: 'Runs side by side' }).waitFor();
  await picture(dark, 'dark');

  await page.getByText('Choose runs').click();
  await page.getByRole('checkbox', { name: new RegExp(two.record.run_id) }).check();
  await expect.poll(() => rates.locator('.series').count(), PATIENT).toBe(1);
  expect(page.url()).toContain(`runs=${two.record.run_id}`);
  // The list stays open for the next choice.
  await page.getByRole('checkbox', { name: new RegExp(one.record.run_id) }).check();
  await expect.poll(() => rates.locator('.series').count(), PATIENT).toBe(2);
});

test('no run, no result, one result, and new results while one looks', SLOW, async () => {
  const farm = await testFarm();
  const { url } = await gatewayOver(farm);
  const page = await openPage(url, TOKEN);
  await page.goto(`${url}/ui/#/trends`);
  await page.getByText('No runs yet.').waitFor();
  const made = await makeRun(farm, { instances: 1, groupSize: 2, committed: 0, ends: ends(1, 1) });
  await page.reload();
  await page.getByText('No rollout of these runs has ended yet.').waitFor();
  await picture(page, 'empty');
  const judged = await made.commit(0);
  await page.reload();
  const turns = page.getByRole('img', { name: /^Mean turns/ });
  await turns.waitFor();
  expect(await turns.locator('circle').count()).toBe(judged.outcome === 'judged' ? 1 : 0);
  await picture(page, 'one');
  await made.commit(1);
  await expect.poll(() => turns.locator('circle').count(), PATIENT).toBe(2);
});

test('10,000 rollouts with 10,000 versions are a line of bounded length, quickly', SLOW, async () => {
  const farm = await testFarm();
  const made = await makeRun(farm, { instances: 1_250, groupSize: 8, ends: ends(1, 1) });
  const { url } = await gatewayOver(farm);
  const asked = await fetch(`${url}/v1/page/trends`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const text = await asked.text();
  expect(text.length).toBeLessThan(300_000);
  const { series } = JSON.parse(text) as { series: { versions: unknown[]; all: { rollouts: number } }[] };
  expect(series[0]?.all.rollouts).toBe(made.rollouts.length);
  expect(series[0]?.versions.length).toBeLessThanOrEqual(240);
  const page = await openPage(url, TOKEN);
  await page.goto(`${url}/ui/#/trends`);
  await page
    .getByRole('img', { name: /^Resolve rate/ })
    .locator('path')
    .waitFor();
  await page.getByRole('img', { name: /^Resolve rate/ }).hover();
  await page.getByText(/^step-\d+ to step-\d+, \d+ rollouts: /).waitFor();
  await picture(page, 'many');
});

test('dragging over a chart zooms all charts; the arrow keys show each point', SLOW, async () => {
  const farm = await testFarm();
  await makeRun(farm, { instances: 20, groupSize: 8, ends: ends(1, 10) });
  const { url } = await gatewayOver(farm);
  const page = await openPage(url, TOKEN);
  await page.goto(`${url}/ui/#/trends`);
  const turns = page.getByRole('img', { name: /^Mean turns/ });
  const rates = page.getByRole('img', { name: /^Resolve rate/ });
  await turns.focus();
  await page.keyboard.press('ArrowRight');
  await page.getByText(/^step-2, 10 rollouts: /).waitFor();
  expect(await rates.textContent()).toMatch(/step-1.*step-16/s);
  const { x = 0, y = 0, width = 0 } = (await turns.boundingBox()) ?? {};
  const moveTo = (share: number) => page.mouse.move(x + width * share, y + 60);
  await moveTo(0.4);
  await page.getByText(/^step-[4-7], 10 rollouts: /).waitFor();
  await page.mouse.down();
  await moveTo(0.6);
  await page.locator('.recharts-reference-area').waitFor({ state: 'attached' });
  await page.mouse.up();
  await page.getByRole('button', { name: 'Show the whole range' }).waitFor();
  expect(await rates.textContent()).not.toMatch(/step-16/);
  await page.getByRole('button', { name: 'Show the whole range' }).click();
  await expect.poll(() => rates.textContent(), PATIENT).toMatch(/step-16/);
});
