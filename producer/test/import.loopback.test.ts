/** Tests `swefarm import`: it converts files of other programs to an output that other commands read. */
import { mkdir, readdir, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { expect, test } from 'vitest';
import { exited, linesOf, run } from './cli.ts';
import { aPatch, storeRollouts } from './stored.ts';

const call = (id: string, command: string) => ({
  id,
  type: 'function',
  function: { name: 'bash', arguments: JSON.stringify({ command }) },
});
const prompt = [
  { role: 'system', content: 'fix' },
  { role: 'user', content: [{ type: 'text', text: 'this' }] },
];

/** A trajectory as mini-swe-agent 2 writes it. */
const mini = {
  info: {
    exit_status: 'Submitted',
    submission: aPatch('2'),
    model_stats: { instance_cost: 0.1, api_calls: 1 },
    mini_version: '2.4.6',
    config: { model: { model_name: 'gpt-x' } },
  },
  messages: [
    ...prompt,
    {
      role: 'assistant',
      content: 'look',
      tool_calls: [call('c1', 'ls')],
      extra: { cost: 0.1, timestamp: 1 },
    },
    {
      role: 'tool',
      tool_call_id: 'c1',
      content: '<returncode>3</returncode>\n<output>a</output>',
      extra: {},
    },
    { role: 'exit', content: '', extra: { exit_status: 'Submitted' } },
  ],
  trajectory_format: 'mini-swe-agent-1.1',
  instance_id: 'a__b-1',
};

/** A trajectory as SWE-agent 1.1 writes it. */
const traj = {
  environment: 'main',
  trajectory: [
    { action: 'ls', observation: 'a.py', response: 'look', thought: 'look', query: [], extra_info: {} },
  ],
  history: [
    { role: 'system', content: 'fix', agent: 'main', message_type: 'system_prompt' },
    { role: 'user', content: [{ type: 'text', text: 'this' }], agent: 'main', message_type: 'observation' },
    {
      role: 'assistant',
      content: 'look',
      action: 'ls',
      tool_calls: [call('c1', 'ls')],
      message_type: 'action',
    },
    {
      role: 'tool',
      content: [{ type: 'text', text: 'a.py' }],
      tool_call_ids: ['c1'],
      message_type: 'observation',
    },
  ],
  info: { exit_status: 'submitted (exit_cost)', submission: aPatch('3') },
  replay_config: JSON.stringify({ agent: { model: { name: 'claude-x' } } }),
};

const response = {
  id: 'resp1',
  choices: [
    { message: { role: 'assistant', content: 'two', tool_calls: [call('c1', 'ls'), call('c2', 'pwd')] } },
  ],
};

const ran = { source: 'agent', action: 'run', tool_call_metadata: { model_response: response } };
const observed = (tool_call_id: string) => ({
  source: 'agent',
  observation: 'run',
  tool_call_metadata: { tool_call_id },
});

/** A line as OpenHands writes it: one answer of the model made two actions. */
const output = {
  instance_id: 'a__b-2',
  test_result: { git_patch: aPatch('4'), report: { resolved: true } },
  metadata: { llm_config: { model: 'qwen-x' } },
  history: [
    { source: 'user', action: 'message', args: { content: 'this' } },
    { ...ran, args: { command: 'ls' } },
    { ...observed('c1'), content: 'a.py' },
    { ...ran, args: { command: 'pwd' } },
    { ...observed('c2'), content: '/' },
    { source: 'agent', action: 'finish', args: { thought: 'done' } },
  ].map((event, id) => ({ id, ...event })),
};

async function prepare(files: Record<string, unknown>) {
  const folder = await testFolder();
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, Buffer.isBuffer(content) ? content : JSON.stringify(content));
  }
  const results = join(folder, 'imported.jsonl');
  const go = (format: string, path: string, ...more: string[]) =>
    run(['import', format, join(folder, path), '--output', results, ...more]);
  const messages = async () => {
    const out = join(folder, 'sft.jsonl');
    expect((await run(['export', results, '--format', 'sft-messages', '--out', out])).code).toBe(0);
    return await linesOf(out);
  };
  return { folder, results, go, messages };
}

test('mini-swe-agent: messages, commands with their exit codes, patch and model; no verdict', async () => {
  const { results, go, messages } = await prepare({ 'trajs/a__b-1/a__b-1.traj.json': mini });
  const ran = await go('mini-swe-agent', 'trajs');
  expect(ran).toMatchObject(
    exited(0, /1 imported as run \w+: 1 with a trajectory, 1 with a patch, 0 with a verdict/),
  );
  expect(await linesOf(results)).toMatchObject([
    {
      instance_id: 'a__b-1',
      outcome: 'judged',
      resolved: null,
      reward: null,
      reward_row: 'ungraded',
      exit_status: 'submitted',
      turns: 1,
      patch: aPatch('2'),
      imported: {
        format: 'mini-swe-agent',
        model: 'gpt-x',
        file: expect.stringContaining('a__b-1.traj.json'),
      },
    },
  ]);
  const [line] = await messages();
  expect(line).toMatchObject({
    model: 'gpt-x',
    messages: [
      { role: 'system' },
      { role: 'user', content: 'this' },
      { role: 'assistant', content: 'look' },
      { role: 'tool', tool_call_id: 'c1' },
    ],
    swefarm: { imported: { format: 'mini-swe-agent' } },
  });
  const shown = JSON.parse((await run(['show', `${results}#a__b-1.0`])).stdout);
  expect(shown.content.trajectory.turns[0].commands).toMatchObject([{ command: 'ls', exit_code: 3 }]);
});

test('swe-agent: parts of text, lists of call ids, a status with a limit in it', async () => {
  const { results, go, messages } = await prepare({ 't/a__b-1/a__b-1.traj': traj });
  expect((await go('swe-agent', 't')).code).toBe(0);
  expect(await linesOf(results)).toMatchObject([
    { instance_id: 'a__b-1', exit_status: 'submitted', imported: { model: 'claude-x' }, patch: aPatch('3') },
  ]);
  expect((await messages())[0]?.messages).toMatchObject([
    { content: 'fix' },
    { content: 'this' },
    { content: 'look', tool_calls: [{ id: 'c1' }] },
    { role: 'tool', content: 'a.py', tool_call_id: 'c1' },
  ]);
});

test('openhands: several actions of one answer are one message; the verdict comes along', async () => {
  const { results, go, messages } = await prepare({
    'output.jsonl.gz': gzipSync(`${JSON.stringify(output)}\n`),
  });
  expect((await go('openhands', 'output.jsonl.gz')).code).toBe(0);
  expect(await linesOf(results)).toMatchObject([{ resolved: true, reward: 1, patch: aPatch('4') }]);
  expect((await messages())[0]?.messages).toMatchObject([
    { role: 'user', content: 'this' },
    { role: 'assistant', content: 'two', tool_calls: [{ id: 'c1' }, { id: 'c2' }] },
    { role: 'tool', content: 'a.py', tool_call_id: 'c1' },
    { role: 'tool', content: '/', tool_call_id: 'c2' },
    { role: 'assistant', content: 'done' },
  ]);
});

test('predictions are patches without a trajectory; a format of trajectories counts them', async () => {
  const preds = {
    'a__b-1': { model_name_or_path: 'm', model_patch: aPatch('2') },
    'a__b-2': { model_patch: null },
  };
  const { folder, results, go } = await prepare({ 'preds.json': preds });
  const ran = await go('preds', 'preds.json', '--model', 'mine');
  expect(ran).toMatchObject(exited(0, '0 with a trajectory, 1 with a patch'));
  expect(await linesOf(results)).toMatchObject([{ imported: { model: 'mine' } }, { patch: null }]);
  const sft = await run(['export', results, '--format', 'sft-messages', '--out', join(folder, 's')]);
  expect(sft).toMatchObject(exited(2, '2 no trajectory is stored'));
  const out = join(folder, 'again.jsonl');
  const again = await run(['export', results, '--format', 'preds', '--out', out]);
  expect(again).toMatchObject(exited(0, '2 of them are imported (off-policy)'));
  expect(await linesOf(out)).toMatchObject([{ instance_id: 'a__b-1', model_name_or_path: 'mine' }, {}]);
});

test('a format that needs token ids refuses imported rollouts by name', async () => {
  const { folder, results, go } = await prepare({ 't/a__b-1.traj': traj });
  await go('swe-agent', 't');
  const ran = await run(['export', results, '--format', 'tokens', '--out', join(folder, 'tokens')]);
  expect(ran).toMatchObject(exited(2, '1 without token ids: imported from swe-agent'));
  expect(await readdir(folder)).toEqual(['imported.jsonl', 'imported.jsonl.artifacts', 't']);
});

test('bad files are named and counted, and the good ones are imported', async () => {
  const { go } = await prepare({
    't/1.traj.json': mini,
    't/2.traj.json': { ...mini, trajectory_format: 'mini-swe-agent-9' },
    't/3.traj.json': { ...mini, messages: [{ type: 'function_call', name: 'bash' }] },
    't/4.traj.json': Buffer.from('{"cut'),
  });
  const { code, stderr } = await go('mini-swe-agent', 't');
  expect(code).toBe(10);
  expect(stderr).toMatch(/2\.traj\.json: not imported: trajectory_format is "mini-swe-agent-9"/);
  expect(stderr).toMatch(/3\.traj\.json: not imported: a message of the role null; only chat messages/);
  expect(stderr).toMatch(/4\.traj\.json: not imported: /);
  expect(stderr).toContain('1 imported');
  expect(stderr).toContain('3 could not be read');
});

test('gzip that is cut off is an error, and nothing is left', async () => {
  const lines = gzipSync(
    Array.from({ length: 300 }, (_, at) =>
      JSON.stringify({ ...output, instance_id: `a__b-${at}`, noise: Math.random() }),
    ).join('\n'),
  );
  const { folder, go } = await prepare({ 'o.jsonl.gz': lines });
  await truncate(join(folder, 'o.jsonl.gz'), lines.length - 100);
  expect(await go('openhands', 'o.jsonl.gz')).toMatchObject(exited(2, 'the gzip data is cut off or damaged'));
  expect(await readdir(folder)).toEqual(['o.jsonl.gz']);
});

test('a recipe mixes on- and off-policy rollouts by their shares', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 6 }, (_, at) => [`t/a__b-${at}.traj.json`, { ...mini, instance_id: `a__b-${at}` }]),
  );
  const { folder, results, go } = await prepare(many);
  await go('mini-swe-agent', 't');
  const ours = await storeRollouts(
    folder,
    [0, 1, 2].map((at) => ({ over: { instance_id: `c__d-${at}` } })),
  );
  const recipe = join(folder, 'recipe.yaml');
  const out = join(folder, 'mixed.jsonl');
  await writeFile(
    recipe,
    `parts:\n- {results: [${ours}], share: 0.75}\n- {results: [${results}], share: 0.25}\n`,
  );
  const mix = () => run(['export', '--recipe', recipe, '--format', 'sft-messages', '--out', out]);
  const { code, stderr } = await mix();
  expect(code).toBe(0);
  expect(stderr).toContain('5 beyond their share');
  expect(stderr).toContain('1 of them are imported (off-policy): 25.0 %');
  expect(await linesOf(out)).toHaveLength(4);
  await writeFile(recipe, 'parts:\n- {results: [], share: 1}\n');
  expect(await mix()).toMatchObject(exited(2, 'recipe.yaml: parts.0.results'));
});

const OUTSIDE = ['/../../../../victim/evil', '../../victim/evil', '..', '', 'a\0b'];

test.each([...OUTSIDE, 'a/b'])('an instance id %j that is no name is not imported', async (id) => {
  const preds = ['a__b-1', id].map((instance_id) => ({ instance_id, model_patch: aPatch('2') }));
  const { results, go } = await prepare({
    'p.jsonl': Buffer.from(preds.map((line) => JSON.stringify(line)).join('\n')),
  });
  const ran = await go('preds', 'p.jsonl');
  expect(ran).toMatchObject(exited(10, '1 imported'));
  expect(ran.stderr).toMatch(/p\.jsonl .*: not imported: the (field )?instance.?id/);
  expect(await readdir(`${results}.artifacts`)).toHaveLength(1);
});

test.each(OUTSIDE)(
  'an output that names an instance %j makes no export write outside of its folder',
  async (id) => {
    const made = await testFolder();
    await mkdir(join(made, 'deep/er'), { recursive: true });
    const forged = await storeRollouts(made, [{ line: { instance_id: id } }]);
    for (const format of ['swe-agent', 'mini-swe-agent']) {
      const exported = await run(['export', forged, '--format', format, '--out', join(made, 'deep/er/tree')]);
      expect(exported).toMatchObject(exited(2, 'would be outside of it'));
    }
    const left = (await readdir(made, { recursive: true })).filter((name) => !name.startsWith('artifacts'));
    expect(left.toSorted()).toEqual(['deep', 'deep/er', 'results.jsonl']);
  },
);
