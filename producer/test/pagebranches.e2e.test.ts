/** Tests the tree of branches on the page in a real Chromium, over a farm and over an output file. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFarm, testFolder } from '@swefarm/runs/test/farm.ts';
import { type Farm, newId, parseRolloutId, type RunRecord, rolloutId } from '@swefarm/shared';
import { makeRun, until } from '@swefarm/testkit';
import { encodeLine, outputLine } from '@swefarm/trajectories';
import { aResult } from '@swefarm/trajectories/test/result.ts';
import { expect, onTestFinished, test } from 'vitest';
import { gatewayOver, openPage, TOKEN } from './browser.ts';
import { start } from './cli.ts';

/** Stores a run of branches with the given rewards; null: a rollout without a result. */
async function branch(farm: Farm, record: RunRecord, of: string, turn: number, rewards: (number | null)[]) {
  const { instanceId: instance_id } = parseRolloutId(of);
  const instance = await farm.runs.getInstance(record.run_id, instance_id);
  const branch_of = { rollout_id: of, turn };
  const dataset = { ...record.dataset, instances: 1 };
  const run = { ...record, run_id: newId(), dataset, group_size: rewards.length, branch_of };
  await farm.runs.create(run, instance ? [instance] : []);
  const results = rewards.flatMap((reward, rollout_index) => {
    if (reward === null) return [];
    const id = rolloutId(run.run_id, instance_id, rollout_index);
    const where = { run_id: run.run_id, rollout_id: id, instance_id, rollout_index, branch_of };
    return [aResult({ ...where, reward, resolved: reward === 1 })];
  });
  for (const result of results) await farm.commit(run, result);
  return { run, results };
}

test('branches form a tree, with the mean reward behind each turn', {
  timeout: 120_000,
}, async () => {
  const farm = await testFarm();
  const made = await makeRun(farm, { instances: 3, groupSize: 2, artifacts: 1 });
  const [parent = ''] = made.rollouts;
  const late = await branch(farm, made.record, parent, 9, [1, 0, 0, null]);
  const early = await branch(farm, made.record, parent, 3, [1, 1]);
  const [first] = early.results;
  const nested = await branch(farm, early.run, first?.rollout_id ?? '', 7, [0]);
  const { url } = await gatewayOver(farm);

  const page = await openPage(url, TOKEN);
  await page.goto(`${url}/ui/#/rollout/${encodeURIComponent(parent)}`);
  const region = page.getByRole('region', { name: 'Branches' });
  await region.waitFor();
  expect(await region.getByRole('heading').textContent()).toBe('Branches 7');
  expect(await region.locator('.point > span:not(.squares)').allTextContents()).toEqual([
    ...['behind turn 3', 'mean reward 1.00', '2 of 2 rewarded'],
    ...['behind turn 7', 'mean reward 0.00', '1 of 1 rewarded'],
    ...['behind turn 9', 'mean reward 0.33', '3 of 4 rewarded'],
  ]);
  const squares = region.locator('.squares').last().getByRole('link');
  expect(await squares.allTextContents()).toEqual(['✓', '✗', '✗', '·']);
  await squares.first().click();
  await page.getByText('behind turn 9').waitFor();
  expect(page.url()).toContain(late.run.run_id);

  await page.goto(`${url}/ui/#/run/${made.record.run_id}/groups`);
  await region.waitFor();
  expect(await region.getByRole('link', { name: /#0$/ }).count()).toBe(2);
  await page.goto(`${url}/ui/#/run/${nested.run.run_id}/groups`);
  await page.getByText('behind turn 7').waitFor();

  // The page over a file shows the same tree.
  const results = await Promise.all(made.rollouts.map((id) => farm.results.get(id)));
  const whole = [
    ...results.flatMap((one) => one ?? []),
    ...[late, early, nested].flatMap((one) => one.results),
  ];
  const file = join(await testFolder(), 'all.jsonl');
  const lines = whole.map((result) => encodeLine(outputLine(result, { patch: 'diff', report: null })));
  await writeFile(file, `${lines.join('\n')}\n`);
  const shown = start(['show', '--web', file]);
  onTestFinished(() => void shown.child.kill());
  await until(() => shown.stdout().includes('\n'));
  const address = shown.stdout().trim();
  const other = await openPage(new URL(address).origin, null);
  await other.goto(address);
  await other.getByRole('link', { name: made.record.run_id, exact: true }).click();
  const again = other.getByRole('region', { name: 'Branches' });
  await again.waitFor();
  expect(await again.getByText('mean reward').allTextContents()).toHaveLength(3);
});
