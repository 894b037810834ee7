/** Tests that each view of the page has an accessibility score of at least 95 by Lighthouse, in light and dark, wide and narrow. */
import { fileURLToPath } from 'node:url';
import { testFarm } from '@swefarm/runs/test/farm.ts';
import { makeRun, run } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { gatewayOver, TOKEN } from './browser.ts';

const SITE = fileURLToPath(new URL('../../site/', import.meta.url));

/** Returns a line for each page in each view: the score, the address and the view. */
async function scores(...args: string[]): Promise<string[]> {
  // The program fails if a score is too low, and prints the elements that cause it.
  const { code = 0, stdout } = await run('bash', [`${SITE}site.sh`, 'check', ...args]).catch(
    (error) => error,
  );
  expect(code, stdout).toBe(0);
  return stdout.split('\n').filter((line: string) => /^\d/.test(line));
}

test('each view of the page and its login have a score of at least 95', async () => {
  const farm = await testFarm();
  const made = await makeRun(farm, { instances: 40, groupSize: 4, committed: 150, artifacts: 8, turns: 12 });
  const { url } = await gatewayOver(farm);
  const id = made.record.run_id;
  const [one = '', two = ''] = made.rollouts.map(encodeURIComponent);
  const views = ['', `run/${id}`, `run/${id}/rollouts`, `rollout/${one}`, `compare/${one}/${two}`, 'trends'];
  const found = await scores('--token', TOKEN, ...views.map((view) => `${url}/ui/#/${view}`));
  expect(found).toHaveLength(views.length * 3);
  expect(await scores(`${url}/ui/`)).toHaveLength(3);
});
