/** Tests the page in a real Chromium over a rollout whose agent has several lines. */
import { readFile } from 'node:fs/promises';
import { until } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { openPage, PATIENT } from './browser.ts';
import { start } from './cli.ts';
import { branchedRollout } from './lines.ts';
import { storedRollouts } from './stored.ts';

test('lines are listed and shown one at a time, and outputs are downloaded', {
  timeout: 90_000,
}, async () => {
  const { results } = await storedRollouts([branchedRollout('<img src=x onerror="window.owned = 1">')]);
  const shown = start(['show', '--web', results]);
  onTestFinished(() => void shown.child.kill());
  await until(() => shown.stdout().includes('\n'));
  const address = shown.stdout().trim();
  const page = await openPage(new URL(address).origin, null);
  await page.goto(address);
  await page.getByRole('link', { name: 'r1', exact: true }).click();
  await page.goto(`${new URL(address).origin}/ui/#/rollout/r1.a__b-1.0`);

  const lines = page.getByRole('navigation', { name: 'Lines' }).getByRole('button');
  await lines.nth(5).waitFor();
  expect(await lines.allTextContents()).toEqual([
    'L1 main 2 turns',
    'L2 subagent 2 turns',
    'L3 summary 1 turn',
    'L4 main 1 turn',
    'L5 abandoned 1 turn, from L1 after 1 not trained',
    'L6 subagent 1 turn, from L2 after 1',
  ]);
  const second = page.getByRole('article', { name: 'Turn 2' });
  const text = await second.textContent();
  expect(text).toContain('given back in another formasked 2 times');
  expect(text).toContain('Edit({"file_path":"/testbed/a.py"})');
  expect(text).toContain('<img src=x');
  expect(await page.evaluate('"owned" in window')).toBe(false);
  const facts = page.getByRole('region', { name: 'Outcome' });
  expect(await facts.textContent()).toContain('agent claude-code 2.1 · exit code 0 · 6 lines');

  await lines.nth(4).click();
  await page.getByText('Its turns are not trained on: abandoned.').waitFor();
  const only = page.getByRole('article');
  expect(await only.count()).toBe(1);
  expect(await only.textContent()).toContain('say 5.1');
  await only.getByText('5 token ids').click();
  await expect.poll(() => only.getByRole('listitem').allTextContents(), PATIENT).toHaveLength(5);
  expect(await only.getByText(/5 tokens of earlier turns, then 2 new/).count()).toBe(1);
  await page.getByRole('button', { name: 'L1', exact: true }).click();
  await second.waitFor();

  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'sessions/a b.jsonl' }).click();
  expect(await readFile(await (await saved).path(), 'utf8')).toBe('{"type":"result"}\n');
});
