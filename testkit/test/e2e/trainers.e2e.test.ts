/** Tests adapters for trainers against a real gateway, worker and scripted policy. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { conversation, loadScript, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { ROOT, startFarm } from './pythonfarm.ts';

type Counts = { counts: { outcomes: { cancelled?: number } } };

test('TRL gets the same samples after a restart, and slime ends a step early', async () => {
  await using stack = new AsyncDisposableStack();
  const { folder, call, row, python } = await startFarm(stack);
  const examples = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
  const parse = examples.conversations.find(({ name }) => name?.startsWith('parse'));
  if (!parse) throw new Error('no conversation of the example');
  const quick = stack.use(await startScriptedPolicy({ script: { conversations: [parse] } }));
  const slow = stack.use(await startScriptedPolicy({ script: conversation(running('sleep 600')) }));
  await writeFile(join(folder, 'rows.jsonl'), `${JSON.stringify(row)}\n`);
  const child = python([join(import.meta.dirname, 'adapters.py'), 'rows.jsonl', quick.url, slow.url]);
  const [printed, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(errors).toBe('');
  expect(
    printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    {
      // The script has a fix, a wrong fix, an answer that the context limit cuts, and an endpoint that refuses.
      rewards: [-1, -1, 0, 1],
      why: ['', expect.stringMatching(/^overlong: /), expect.stringMatching(/^policy_unauthorized: /)],
      ...{ lengths: true, sampled: true, told: true, same: true, rollouts: 4 },
    },
    { status: 'aborted', quick: true },
  ]);
  const json = async <T>(path: string): Promise<T> => (await (await call('GET', path)).json()) as T;
  const cancelled = async () => {
    const { runs } = await json<{ runs: { run_id: string }[] }>('/v1/runs');
    const all = runs.map(({ run_id }) => json<Counts>(`/v1/runs/${run_id}`));
    return (await Promise.all(all)).reduce((sum, { counts }) => sum + (counts.outcomes.cancelled ?? 0), 0);
  };
  await expect.poll(cancelled, { timeout: 60_000 }).toBe(1);
});
