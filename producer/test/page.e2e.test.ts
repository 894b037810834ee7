/** Tests the page in a real Chromium: contents, updates of a running run, and that text of a model is never executed. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFarm, testFolder } from '@swefarm/runs/test/farm.ts';
import type { Farm } from '@swefarm/shared';
import { type MadeRun, madeLiveTurn, madeTrajectory, makeRun, until } from '@swefarm/testkit';
import { encodeLine, outputLine } from '@swefarm/trajectories';
import { expect, onTestFinished, test } from 'vitest';
import { gatewayOver, openPage, PATIENT, TOKEN } from './browser.ts';
import { start } from './cli.ts';

/** Text with executable HTML, terminal escapes and a direction override. */
const HOSTILE =
  '\n<script>window.owned = 1</script><img src=x onerror="window.owned = 2"><a href="javascript:window.owned=3">x</a>' +
  '\u001b]0;owned\u0007\u001b[2J\u202egnirts';
const SLOW = { timeout: 90_000 };
const rolloutUrl = (origin: string, id = ''): string => `${origin}/ui/#/rollout/${encodeURIComponent(id)}`;

test('5,000 rollouts: token, runs, grid, list, filters, keys', SLOW, async () => {
  const farm = await testFarm();
  const made = await makeRun(farm, { instances: 625, groupSize: 8, committed: 4_990 });
  const { url } = await gatewayOver(farm);
  const page = await openPage(url, null);
  await page.goto(`${url}/ui/`);
  const token = page.getByLabel('Token of the gateway');
  await token.fill('not it');
  await token.press('Enter');
  await page.getByText('Unknown token.').waitFor();
  await token.fill(TOKEN);
  // The server is unreachable for one request.
  await page.evaluate(
    'const real = fetch; fetch = () => { fetch = real; return Promise.reject(new TypeError("no route")); }; null',
  );
  await token.press('Enter');
  await page.getByText('The server did not check the token: no route').waitFor();
  await token.press('Enter');
  await page.getByRole('link', { name: made.record.run_id }).click();

  const grid = page.getByRole('grid', { name: 'Groups' });
  await grid.waitFor();
  expect(await grid.getAttribute('aria-rowcount')).toBe('625');
  expect(await page.locator('.square').count()).toBeLessThan(1_000);
  expect(await page.locator('.square').first().textContent()).toMatch(/^[✓✗!–]$/);
  expect(page.url()).not.toContain(TOKEN);

  // Arrow keys move through siblings and groups. The focused cell has a label for screen readers.
  await page.locator('.square[tabindex="0"]').focus();
  for (const key of ['ArrowRight', 'ArrowDown', 'PageDown']) await page.keyboard.press(key);
  await expect
    .poll(() => page.evaluate('document.activeElement?.getAttribute("data-cell")'), PATIENT)
    .toBe('21.1');
  expect(await page.evaluate('document.activeElement?.getAttribute("aria-label")')).toMatch(/ 1: \w+/);

  await page.getByRole('link', { name: 'Rollouts', exact: true }).click();
  const list = page.getByRole('grid', { name: 'Rollouts' });
  await list.waitFor();
  expect(await list.getAttribute('aria-rowcount')).toBe('5001');
  await page.getByRole('button', { name: /^failed/ }).click();
  const { failed } = (await farm.results.counts(made.record.run_id)).outcomes;
  await expect.poll(() => list.getAttribute('aria-rowcount'), PATIENT).toBe(String(failed + 1));
  await page.getByLabel('failure', { exact: true }).selectOption('image_pull');
  await page.getByText('the registry answered 503').first().waitFor();
  expect(page.url()).toContain('state=failed&failure=image_pull');
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.getByRole('button', { name: 'Turns' }).click();
  await expect.poll(() => page.locator('[role=columnheader][aria-sort=descending]').count(), PATIENT).toBe(1);
});

async function judged(farm: Farm, made: MadeRun): Promise<string[]> {
  const results = await Promise.all(made.rollouts.map((id) => farm.results.get(id)));
  return results.flatMap((one) => (one?.outcome === 'judged' ? [one.rollout_id] : []));
}

test(
  'a trajectory: turns, tokens, patch beside gold, tests, siblings; hostile text stays text',
  SLOW,
  async () => {
    const farm = await testFarm();
    const options = { instances: 1, groupSize: 4, artifacts: 4, turns: 300, hostile: HOSTILE };
    const made = await makeRun(farm, options);
    const [one = '', other = ''] = await judged(farm, made);
    const { url } = await gatewayOver(farm);
    const page = await openPage(url, TOKEN);
    await page.goto(rolloutUrl(url, made.rollouts[0]));
    await page.getByRole('article', { name: 'Turn 300' }).waitFor({ state: 'attached' });
    const first = page.getByRole('article', { name: 'Turn 1', exact: true });
    const text = await first.textContent();
    expect(text).toContain('<script>window.owned = 1</script><img src=x onerror=');
    expect(text).toContain('␛]0;owned␇␛[2J<202e>gnirts');
    expect(await page.evaluate('"owned" in window')).toBe(false);
    expect(await page.locator('main img, main script, main a[href^=javascript]').count()).toBe(0);

    await first.getByText('90 token ids').click();
    await expect.poll(() => first.getByRole('listitem').count(), PATIENT).toBe(90);
    await page
      .locator('#turn-3')
      .getByRole('button', { name: /more lines/ })
      .click();
    expect(await page.locator('#turn-3').textContent()).toContain('value_30 = compute(30)');

    const patch = page.getByRole('region', { name: 'Patch' });
    expect(await patch.locator('.added').allTextContents()).toContain('+        if value is not None:\n');
    expect(await patch.textContent()).toContain('reproduce.py is not touched');
    const tests = page.getByRole('region', { name: 'Tests' });
    await tests.getByText(/test log/).click();
    await tests.getByText('PASSED tests/test_core.py::test_1', { exact: false }).first().waitFor();
    expect(await tests.textContent()).toContain('tests/test_core.py::test_merge_none');

    await page.goto(`${url}/ui/#/compare/${encodeURIComponent(one)}/${encodeURIComponent(other)}`);
    await page.getByText(/they differ from turn 3/).waitFor();
    expect(await page.locator('.turn.differs').count()).toBe(2);
  },
);

test('what runs is followed: turn by turn, into its result', SLOW, async () => {
  const farm = await testFarm();
  const made = await makeRun(farm, { instances: 1, groupSize: 2, committed: 1, artifacts: 2, turns: 5 });
  const id = made.rollouts[1] ?? '';
  const trajectory = madeTrajectory(5, 1);
  const tell = async (turns: number): Promise<void> => {
    await farm.registry.beat({
      ...{ worker: 'w1', node: 'n1', runtime: 'host', slots: 1, active: 1 },
      ...{ started_at: 1, metrics: null, paused: null },
    });
    await farm.live.mark({
      ...{ rollout_id: id, attempt: 1, worker: 'w1', node: 'n1', stage: 'agent', turns },
      ...{ claimed_at: Date.now(), at: Date.now() },
    });
    await farm.live.turn(id, madeLiveTurn(trajectory, turns - 1), 8);
  };
  const { url } = await gatewayOver(farm);
  const [list, page] = [await openPage(url, TOKEN), await openPage(url, TOKEN)];
  await list.goto(`${url}/ui/#/run/${made.record.run_id}`);
  await list.locator('.square.waiting').waitFor();
  const asked: number[] = [];
  page.on('requestfinished', (request) => {
    if (request.url().includes('/live?')) asked.push(request.timing().startTime);
  });
  await page.goto(rolloutUrl(url, id));
  await page.getByText('It waits in the queue.').waitFor();
  // Without a live turn, the page requests the turns about once a second.
  await until(() => asked.length >= 3);
  const [first = 0, , third = 0] = asked;
  expect(third - first).toBeGreaterThan(1_000);
  await tell(1);
  await page.getByText('Running: agent, 1 turns, on n1.').waitFor();
  await page.getByRole('article', { name: 'Turn 1' }).waitFor();
  await list.locator('.square.running').waitFor();
  await tell(2);
  await page.getByRole('article', { name: 'Turn 2' }).waitFor();
  const result = await made.commit(1);
  await farm.live.end('w1', id);
  await page.getByText(`(row ${result.reward_row})`).waitFor();
  await page.getByRole('article', { name: 'Turn 5' }).waitFor({ state: 'attached' });
  await expect.poll(() => list.locator('.square.running').count(), PATIENT).toBe(0);
});

test('a result file alone: swefarm show --web', SLOW, async () => {
  const farm = await testFarm();
  const made = await makeRun(farm, { instances: 3, groupSize: 2, artifacts: 1 });
  const folder = await testFolder();
  const path = join(folder, 'out.jsonl');
  const [first] = made.rollouts;
  const results = await Promise.all(made.rollouts.map((id) => farm.results.get(id)));
  const lines = results.flatMap((one) => (one ? [outputLine(one, { patch: 'a patch', report: null })] : []));
  const [line] = lines;
  const blob = await farm.artifacts.get(line?.artifact ?? '');
  await writeFile(join(folder, 'one.json.gz'), blob);
  // One artifact is beside the output; the other artifacts are missing.
  if (line) line.artifact_file = 'one.json.gz';
  await writeFile(path, lines.map((one) => `${encodeLine(one)}\n`).join(''));

  const shown = start(['show', '--web', path]);
  onTestFinished(() => void shown.child.kill());
  await until(() => shown.stdout().includes('\n'));
  const address = shown.stdout().trim();
  const { origin } = new URL(address);
  expect((await fetch(`${origin}/v1/page/overview`)).status).toBe(401);
  const page = await openPage(origin, null);
  await page.goto(address);
  await page.getByRole('link', { name: made.record.run_id }).click();
  await page.locator('.square').nth(5).waitFor();
  expect(page.url()).not.toContain('key');
  await page.goto(rolloutUrl(origin, first));
  await page.getByRole('article', { name: 'Turn 12' }).waitFor({ state: 'attached' });
  await page.goto(rolloutUrl(origin, made.rollouts[1]));
  await page.getByText('this rollout has no trajectory').waitFor();
});
