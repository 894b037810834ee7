import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { writeFolder } from '@swefarm/trajectories';
import { expect, test } from 'vitest';
import type { EvalTask } from './evaltasks.ts';
import { findFlaky, renderFlaky } from './flaky.ts';

const tests = (success: string[], failure: string[]) => ({
  FAIL_TO_PASS: { success, failure },
  PASS_TO_PASS: { success: ['steady'], failure: [] },
});

test('tests that differ between evaluations are named, steady ones are not', async () => {
  const root = temporaryFolder('flaky');
  const items: EvalTask[] = [];
  const add = async (id: string, round: number, report: object | null) => {
    const prediction = { instance_id: id, model_name_or_path: 'm', model_patch: 'p' };
    const folder = join(root, String(round), id);
    items.push({ prediction, round, folder, state: 'open' });
    await writeFolder(folder, {
      ...{ patch: 'p', log: '', script: null, testOutput: null },
      report: report && { [id]: report },
    });
  };
  for (const round of [0, 1, 2]) {
    await add('steady-1', round, { resolved: true, tests_status: tests(['a'], []) });
    const passed = round !== 1;
    await add('flaky-1', round, {
      resolved: passed,
      tests_status: passed ? tests(['a', 'b'], []) : tests(['b'], ['a']),
    });
  }
  await add('lost-1', 0, { resolved: false, tests_status: null });
  await add('lost-1', 1, null);
  const flaky = await findFlaky(items);
  expect(flaky).toEqual([
    {
      instance_id: 'flaky-1',
      verdicts: { resolved: 2, unresolved: 1, none: 0 },
      tests: { a: { passed: 2, failed: 1, neither: 0 } },
    },
    { instance_id: 'lost-1', verdicts: { resolved: 0, unresolved: 1, none: 1 }, tests: {} },
  ]);
  expect(renderFlaky(flaky, 3)).toEqual([
    'flaky: flaky-1 (resolved×2, unresolved×1)',
    '  a: passed×2, failed×1',
    'flaky: lost-1 (unresolved×1, none×1)',
  ]);
});
