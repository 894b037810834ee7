/** `swefarm compare` over output files. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { exited, run } from './cli.ts';
import { storedRollouts } from './stored.ts';

/** Stores an output with one rollout of each instance. */
const output = async (verdicts: Readonly<Record<string, boolean>>) => {
  const rollouts = Object.entries(verdicts).map(([id, resolved]) => ({
    over: { instance_id: id, rollout_id: `r1.${id}.0`, rollout_index: 0, resolved, reward: Number(resolved) },
    trajectory: null,
  }));
  return (await storedRollouts(rollouts)).results;
};

test('two outputs are compared as JSON in a pipe, and as Markdown in a file', async () => {
  const ids = Array.from({ length: 10 }, (_, at) => `a__b-${at}`);
  const before = await output(Object.fromEntries(ids.map((id, at) => [id, at === 0])));
  const after = await output(Object.fromEntries(ids.map((id, at) => [id, at > 0])));
  const { code, stdout } = await run(['compare', before, after]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    instances: 10,
    difference: { value: 0.8 },
    test: { name: 'mcnemar_exact', won: 9, lost: 1, p: expect.closeTo(22 / 1024, 10) },
    conclusion: 'better',
    lost: [{ instance_id: 'a__b-0' }],
  });
  const page = `${after}.md`;
  const written = await run(['compare', before, after, '--format', 'markdown', '--output', page]);
  expect(written).toMatchObject({ code: 0, stdout: '' });
  expect(await readFile(page, 'utf8')).toContain('| a__b-0 | 1/1 (100.0 %) | 0/1 (0.0 %) |');
  expect((await run(['compare', before, after])).stdout, 'the bootstrap is seeded').toBe(stdout);
});

test('outputs without a common instance, and a file that does not exist, are refused', async () => {
  const [one, other] = [await output({ i: true }), await output({ j: true })];
  expect(await run(['compare', one, other])).toEqual(
    expect.objectContaining(exited(2, 'no instance has verdicts in both')),
  );
  expect(await run(['compare', one, 'absent.jsonl'])).toEqual(
    expect.objectContaining(exited(2, 'absent.jsonl: no such file')),
  );
});
