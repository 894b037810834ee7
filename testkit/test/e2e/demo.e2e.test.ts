/** Tests that the demo ends with its table and the promised mix of results. */
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../../src/launchers/run.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

test('npm run demo ends with groups of resolved, unresolved, truncated and unrewarded rollouts', async () => {
  const { stderr } = await run('npm', ['run', 'demo'], { cwd: ROOT, maxBuffer: 16 * 1024 ** 2 });
  expect(stderr).toMatch(/2 of 2 rollouts judged, 2 resolved \(100.0 %\)/);
  expect(stderr).toMatch(/6 of 8 rollouts judged, 2 resolved \(33.3 %\), 2 failed, without a reward/);
  expect(stderr).toMatch(/turn_limit/);
  expect(stderr).toContain('policy/policy_unauthorized');
  expect(stderr).toContain('npx swefarm show');
});
