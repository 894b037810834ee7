/** Tests a toolset on a real worker: the model edits with `str_replace_editor`, gets feedback on a submit, and exports have its calls. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { readLines } from '../../src/lines.ts';
import { conversation, type TurnInput } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { openScene } from './scene.ts';
import { EXAMPLE_ID, withoutInstall } from './scripts.ts';

const PATH = '/testbed/parse.py';
const call = (name: string, args: Record<string, string>): TurnInput => ({
  tool_calls: [{ name, arguments: args }],
});
const edit = (command: string, args: Record<string, string>) =>
  call('str_replace_editor', { command, path: PATH, ...args });
const replace = (old_str: string, new_str: string) => edit('str_replace', { old_str, new_str });
const SUBMIT = call('submit', {});

/** The edits of the solution of examples/policy/examples.yaml. */
const FIX = [
  replace(String.raw`r"({{|}}|{\w*(?:\.\w+|`, String.raw`r"({{|}}|{[\w-]*(?:\.[\w-]+|`),
  replace(
    '.replace("]", "_")\n\n        # make sure',
    '.replace("]", "_").replace("-", "_")\n\n        # make sure',
  ),
  replace(
    '                group = field.replace("_", "_" * n)\n',
    '                group = field.replace("_", "_" * n)\n            elif "-" in field:\n                group = field.replace("-", "_" * n)\n',
  ),
];
const LOOKS = [edit('view', {}), replace('no such text', 'x')];
/** Three scripts: solves at once; solves after a failed submit; never solves. */
const VARIANTS = [
  [...LOOKS, ...FIX, call('bash', { command: 'git diff --stat' }), SUBMIT],
  [...LOOKS, SUBMIT, ...FIX, SUBMIT],
  [...LOOKS, edit('create', { path: '/testbed/note.txt', file_text: 'x' }), SUBMIT, SUBMIT],
];

type Message = { role: string; content: string | null; tool_calls?: { function: { name: string } }[] };

test('rollouts with --toolset edit are judged, and exports name tools and calls', async () => {
  await using redis = await startRedis();
  const scene = openScene({ SWEFARM_REDIS_URL: redis.url, SWEFARM_RUNTIME: 'rootfs' });
  await using policy = await startScriptedPolicy({ script: conversation(...VARIANTS) });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const worker = await scene.worker`--concurrency 3 --worker-id ${`t-${process.pid}`}`;
  const run = await scene.submit`--dataset ${await withoutInstall(built.files.default)} --agent mini
    --toolset edit --max-submits 2 --group-size 3 --policy-url ${policy.url} --model scripted --no-probe`;
  const { lines } = await scene.collect(run);
  const by = lines.sort((a, b) => a.rollout_index - b.rollout_index);
  const variant = { toolset: 'edit', toolset_hash: expect.stringMatching(/^\w{64}$/) };
  expect(by).toMatchObject(
    [
      { resolved: true, reward: 1, turns: 7, submits: 1 },
      { resolved: true, reward: 1, turns: 7, submits: 2 },
      { resolved: false, reward: 0, turns: 5, submits: 2 },
    ].map((ended) => ({ outcome: 'judged', exit_status: 'submitted', failure: null, variant, ...ended })),
  );
  expect(new Set(by.map((line) => line.variant?.toolset_hash)).size).toBe(1);

  const seen = await scene.seen(`${join(scene.folder, `${run}.jsonl`)}#${EXAMPLE_ID}.1`);
  expect(seen).toContain(`cat -n\` on ${PATH}`);
  expect(seen).toContain('Tests failed');
  expect(seen).not.toContain('note.txt');

  const out = join(scene.folder, 'sft.jsonl');
  await scene.done`export ${join(scene.folder, `${run}.jsonl`)} --format sft-messages --only-resolved --out ${out}`;
  const exported = await readLines<{ messages: Message[]; tools?: unknown[] }>(out);
  expect(exported).toHaveLength(2);
  for (const { messages } of exported) {
    const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls.map((made) => made.function.name));
    expect(calls).toHaveLength(7);
    expect(calls.filter((name) => name === 'str_replace_editor')).toHaveLength(5);
    expect(calls.at(-1)).toBe('submit');
  }
  expect(await worker.stop()).toBe(0);
  await scene.expectNothingLeft();
});
