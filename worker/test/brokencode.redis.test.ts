/**
 * Patches that break the build or the import, or loop for ever, earn 0 by a control evaluation; the registry of health has no finding about
 * their instances. Rollouts of a real worker on the `host` runtime, with the compilers of this machine.
 */

import { join } from 'node:path';
import { type Instance, newId, type Result } from '@swefarm/shared';
import {
  bareInstance,
  bareRun,
  compilerMissing,
  LANGUAGES,
  type Language,
  makeLanguageTree,
  markedScript,
} from '@swefarm/testkit';
import { expect, test, vi } from 'vitest';
import { runOnHost, useHost } from './hostworker.ts';

vi.setConfig({ testTimeout: 300_000 });

const host = useHost('broken');
const PYTHON = LANGUAGES.Python;

/** An instance of the language, and diffs to its tree. */
async function writeProject(language: Language) {
  const tree = join(host.folder, newId());
  const { columns, patchOf } = await makeLanguageTree(tree, language);
  return { row: bareInstance({ image: `dir:${tree}`, ...columns }), patchOf };
}

/** Results of one rollout for each patch, in their order. */
async function run(row: Instance, patches: readonly string[], timeout = 120): Promise<Result[]> {
  const record = bareRun({
    group_size: patches.length,
    agent: { ...bareRun().agent, type: 'patch' },
    evaluation: { ...bareRun().evaluation, timeout },
    sandbox: { ...bareRun().sandbox, activate: ':' },
    reward: { ...bareRun().reward, host: true },
  });
  const refs = patches.map((patch, at) => [`${row.instance_id}.${at}`, patch] as const);
  const { farm, ids } = await runOnHost(host, record, row, { hostRewards: true, patches: refs });
  const results = await Promise.all(ids.map((id) => farm.results.get(id)));
  return results.flatMap((one) => one ?? []).sort((a, b) => a.rollout_index - b.rollout_index);
}

test.for(Object.entries(LANGUAGES))('%s that does not compile earns 0', async ([, language], { skip }) => {
  const missing = compilerMissing(language);
  if (missing) skip(missing);
  const { row, patchOf } = await writeProject(language);
  const broken = await patchOf(language.broken['compile error']);
  const results = await run(row, [broken, broken]);
  for (const result of results)
    expect(result).toMatchObject({
      ...{ outcome: 'judged', reward: 0, resolved: false, reward_row: 'tests_broken_by_patch' },
      ...{ failure: null, attempt: 1, facts: { evaluation: 'tests_cannot_start', tests_start: true } },
    });
});

test('an endless loop earns 0, and an honest fix beside it 1', async () => {
  const { row, patchOf } = await writeProject(PYTHON);
  const loop = await patchOf(PYTHON.broken['endless loop']);
  const [endless, fixed] = await run(row, [loop, row.patch], 8);
  expect(endless).toMatchObject({ outcome: 'judged', reward: 0, reward_row: 'timeout_of_patch' });
  expect(fixed).toMatchObject({ outcome: 'judged', reward: 1 });
});

test('if the bug is the endless loop, gold shows that the limit is large enough', async () => {
  const { row, patchOf } = await writeProject({ ...PYTHON, files: PYTHON.broken['endless loop'] });
  const other = await patchOf({ 'calc.py': 'while 1: pass\n' });
  const [endless] = await run(row, [other], 8);
  expect(endless).toMatchObject({ outcome: 'judged', reward: 0, reward_row: 'timeout_of_patch' });
});

test('tests that start with no patch are a failure of the instance', async () => {
  const { row, patchOf } = await writeProject(PYTHON);
  const nowhere = { ...row, eval_script: markedScript(['no-such-program']) };
  const results = await run(nowhere, [await patchOf(PYTHON.broken['compile error']), row.patch]);
  expect(results[0]).toMatchObject({
    ...{ outcome: 'failed', reward: null, failure: { class: 'tests_cannot_start' } },
    facts: { tests_start: false },
  });
  expect(results[1]).toMatchObject({ outcome: 'failed', failure: { class: 'tests_cannot_start' } });
});
