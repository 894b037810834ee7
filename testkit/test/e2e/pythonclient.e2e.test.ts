/** Tests the Python client against a real gateway, worker and scripted policy, including a killed trainer and one that stays away. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text as read } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { readLines } from '../../src/lines.ts';
import { conversation, loadScript, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { ROOT, startFarm } from './pythonfarm.ts';
import { EXAMPLE_ID } from './scripts.ts';

type Consumed = { rollout: string; reward: number | null; sampled: number; end: string };

test.each([
  { page: 'docs/python.md', lines: 32, printed: 'mixed \\[[01](\\.0)?, [01](\\.0)?\\]$' },
  { page: 'README.md', lines: 11, printed: '\\[1(\\.0)?, 0(\\.0)?, .*\\] \\[.*\\]$' },
])('the first code of $page runs unchanged and receives a mixed group', async ({ page, lines, printed }) => {
  await using stack = new AsyncDisposableStack();
  const { folder, row, python } = await startFarm(stack);
  const examples = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
  const parse = examples.conversations.find(({ name }) => name?.startsWith('parse'));
  if (!parse) throw new Error('no conversation of the example');
  const policy = stack.use(await startScriptedPolicy({ script: { conversations: [parse] } }));
  const dataset = join(folder, '.swefarm/demo/dataset/instances.jsonl');
  await mkdir(dirname(dataset), { recursive: true });
  for (const file of [dataset, join(folder, 'rows.jsonl')]) await writeFile(file, `${JSON.stringify(row)}\n`);
  const text = await readFile(join(ROOT, page), 'utf8');
  const code = /```python\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
  expect(code.split('\n').length).toBeLessThanOrEqual(lines);
  const child = python(['-c', code.replace('http://localhost:8000/v1', policy.url)], {
    POLICY_URL: policy.url,
    // The code of README.md starts a farm of its own.
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_STATE_DIR: join(folder, 'state'),
  });
  const [output, errors] = await Promise.all([read(child.stdout), read(child.stderr)]);
  expect(errors).toBe('');
  expect(output.trim().split('\n')).toEqual(
    [0, 1].map((step) => expect.stringMatching(new RegExp(`^${step} ${EXAMPLE_ID} ${printed}`))),
  );
});

test('coroutines play and cancel single rollouts', async () => {
  await using stack = new AsyncDisposableStack();
  const { folder, call, row, python } = await startFarm(stack);
  await writeFile(join(folder, 'row.json'), JSON.stringify(row));
  const quick = stack.use(await startScriptedPolicy({ script: conversation(running('true')) }));
  const slow = stack.use(await startScriptedPolicy({ script: conversation(running('sleep 600')) }));
  const child = python([join(import.meta.dirname, 'onebyone.py'), 'row.json', quick.url, slow.url]);
  const [printed, errors] = await Promise.all([read(child.stdout), read(child.stderr)]);
  expect(errors).toBe('');
  const { played, cancelled } = JSON.parse(printed) as { played: unknown; cancelled: string };
  expect(played).toEqual([0, 1].map((index) => [index, 0, 'step-7', true]));
  const state = async () => (await (await call('GET', `/v1/rollouts/${cancelled}`)).json()) as object;
  await expect
    .poll(state, { timeout: 60_000 })
    .toMatchObject({ status: 'done', result: { outcome: 'cancelled', reward_row: 'cancelled' } });
});

test('a restarted trainer gets each sample once, and a lost one frees the farm', async () => {
  await using stack = new AsyncDisposableStack();
  const { folder, call, row, python } = await startFarm(stack);
  const rows = [1, 2, 3].map((number) => ({ ...row, instance_id: `example__copy-${number}` }));
  await writeFile(join(folder, 'rows.json'), JSON.stringify(rows));
  const quick = stack.use(await startScriptedPolicy({ script: conversation(running('true')) }));
  const consume = (policy: string, out: string, ...more: string[]) =>
    python([join(import.meta.dirname, 'trainer.py'), 'rows.json', policy, out, ...more]);

  const first = consume(quick.url, 'once.jsonl', 'step-1', '60', '1');
  await expect
    .poll(() => readLines(join(folder, 'once.jsonl')).catch(() => []), { timeout: 120_000 })
    .toHaveLength(2);
  first.kill('SIGKILL');
  await read(first.stdout);
  const second = consume(quick.url, 'once.jsonl', 'step-1', '60');
  expect(await read(second.stderr)).toBe('');
  const samples = await readLines<Consumed>(join(folder, 'once.jsonl'));
  const runs = new Set(samples.map(({ rollout }) => rollout.split('.')[0]));
  const [run = ''] = runs;
  expect(runs.size).toBe(1);
  const ids = rows.flatMap(({ instance_id }) => [0, 1].map((index) => `${run}.${instance_id}.${index}`));
  expect(samples.map(({ rollout }) => rollout).sort()).toEqual(ids.sort());
  for (const sample of samples) {
    expect(sample).toMatchObject({ reward: 0, end: 'uniform', failure: 'None' });
    expect(sample.sampled).toBeGreaterThan(0);
  }

  const slow = stack.use(await startScriptedPolicy({ script: conversation(running('sleep 600')) }));
  const away = consume(slow.url, 'never.jsonl', 'step-2', '4');
  const running2 = async () => {
    const { runs: all } = (await (await call('GET', '/v1/runs')).json()) as { runs: { run_id: string }[] };
    return all.find(({ run_id }) => run_id !== run)?.run_id;
  };
  await expect.poll(running2, { timeout: 60_000 }).toBeTruthy();
  away.kill('SIGKILL');
  const left = async () => {
    const path = `/v1/runs/${await running2()}`;
    return (await (await call('GET', path)).json()) as { left: number; counts: object };
  };
  await expect.poll(async () => (await left()).left, { timeout: 90_000 }).toBe(0);
  expect((await left()).counts).toMatchObject({ outcomes: { cancelled: 6 } });

  // A restart after the lease plays the cancelled groups again, in another run.
  const back = consume(slow.url, 'never.jsonl', 'step-2', '60');
  const all = async () => {
    const { runs: found } = (await (await call('GET', '/v1/runs')).json()) as { runs: { run_id: string }[] };
    const each = found.map(async ({ run_id }) => (await call('GET', `/v1/runs/${run_id}`)).json());
    return ((await Promise.all(each)) as { left: number }[]).map(({ left: open }) => open).toSorted();
  };
  await expect.poll(all, { timeout: 60_000 }).toEqual([0, 0, 6]);
  back.kill('SIGKILL');
  expect(await read(back.stderr)).toMatch(/the lease of run \S+ expired: 3 groups are played again/);
});
