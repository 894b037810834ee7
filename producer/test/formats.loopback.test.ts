/** Tests each format of `swefarm export` with one stored rollout with tool calls and one with blocks of text. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { madeTrajectory, words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { exited, linesOf } from './cli.ts';
import { aPatch, storedRollouts, toolTrajectory } from './stored.ts';

/** Exports both rollouts and returns the path. */
async function exported(format: string, form: string, out: string): Promise<string> {
  const stored = await storedRollouts([
    {},
    { over: { instance_id: 'a__b-2', resolved: false, reward: 0 }, trajectory: madeTrajectory(2, 1) },
  ]);
  const ran = await stored.exported(format, out, '--form', form);
  expect(ran).toMatchObject({ code: 0 });
  return ran.path;
}

const json = async (path: string) => JSON.parse(await readFile(path, 'utf8'));

test.each(['sft-messages', 'verifier'])(
  '%s: arguments of calls are objects, and text on request',
  async (format) => {
    for (const [form, args] of [
      ['jsonl', { command: 'ls' }],
      ['text', '{"command":"ls"}'],
    ] as const) {
      const [line] = await linesOf(await exported(format, form, 'a.jsonl'));
      const messages = line?.messages as
        | { tool_calls?: { function: { arguments: unknown } }[] }[]
        | undefined;
      expect(messages?.[2]?.tool_calls?.[0]?.function.arguments).toEqual(args);
    }
  },
);

test('swesmith-xml: calls are XML, observations are the user, the end is a submit', async () => {
  const path = await exported('swesmith-xml', 'xml', 'ft_xml_r1.jsonl');
  const [tools, text] = await linesOf(path);
  expect(tools).toMatchObject({
    instance_id: 'a__b-1',
    resolved: true,
    traj_id: 'r1.a__b-1.0',
    patch: aPatch('2'),
  });
  const messages = tools?.messages as { role: string; content: string }[];
  expect(messages.map(({ role }) => role)).toEqual(
    words`system user assistant user assistant user assistant`,
  );
  expect(messages[2]?.content).toBe(
    'Look around.\n\n<function=bash>\n<parameter=command>ls</parameter>\n</function>',
  );
  expect(messages.at(-1)?.content).toBe('<function=submit>\n</function>');
  expect((text?.messages as typeof messages | undefined)?.[2]?.content).toBe(
    'Let me look around first.\n\n<function=bash>\n<parameter=command>ls -la && git log --oneline | head -3</parameter>\n</function>',
  );
});

test("swesmith-xml: nothing of the farm's own prompt contradicts the answers", async () => {
  const made = toolTrajectory();
  const prompts = new URL('../../worker/src/agent/prompts/default/', import.meta.url);
  for (const name of await readdir(prompts)) {
    const text = await readFile(new URL(name, prompts), 'utf8');
    if (!text.includes('<issue>')) continue;
    const messages = made.messages.map((one) => (one.role === 'user' ? { ...one, content: text } : one));
    const stored = await storedRollouts([{ trajectory: { ...made, messages } }]);
    for (const form of ['xml', 'tool', 'user']) {
      const { path } = await stored.exported('swesmith-xml', form, '--form', form);
      const [line] = await linesOf(path);
      const task = (line?.messages as { content: string }[] | undefined)?.[1]?.content;
      expect(task).toContain('{{problem_statement}}\n</issue>');
      expect(task).not.toMatch(/```|submit|sentinel|tool/);
    }
  }
});

test('swesmith-xml as tool calls and as blocks of text: from either kind of conversation', async () => {
  const tool = await linesOf(await exported('swesmith-xml', 'tool', 'a.jsonl'));
  for (const line of tool) {
    const messages = line.messages as {
      role: string;
      tool_calls?: { id: string }[];
      tool_call_id?: string;
    }[];
    const ids = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
    const seen = messages.flatMap(({ tool_call_id }) => tool_call_id ?? []);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen).toEqual(ids.slice(0, seen.length));
  }
  const user = await linesOf(await exported('swesmith-xml', 'user', 'b.jsonl'));
  expect((user[0]?.messages as { content: string }[] | undefined)?.[2]?.content).toBe(
    'Look around.\n\n```\nls\n```',
  );
});

test('swe-agent: .traj, .pred, .patch, preds.json and the exit statuses', async () => {
  const path = await exported('swe-agent', 'tree', 'trajs');
  expect((await readdir(path)).sort()).toEqual(words`a__b-1 a__b-2 preds.json run_batch_exit_statuses.yaml`);
  const traj = await json(join(path, 'a__b-1', 'a__b-1.traj'));
  expect(traj.trajectory.map((step: { action: string }) => step.action)).toEqual([
    'ls',
    "sed -i 's/1/2/' a.py",
    'submit',
  ]);
  expect(traj.trajectory[2].query).toHaveLength(6);
  expect(traj.history).toHaveLength(7);
  expect(traj.history[3]).toMatchObject({ role: 'tool', tool_call_ids: ['c1'], message_type: 'observation' });
  expect(traj.info).toMatchObject({
    exit_status: 'submitted',
    submission: aPatch('2'),
    model_stats: { tokens_sent: 360, tokens_received: 30, api_calls: 3 },
  });
  expect(await json(join(path, 'preds.json'))).toMatchObject({
    'a__b-1': { model_name_or_path: 'scripted-7b', model_patch: aPatch('2') },
  });
  expect(await json(join(path, 'a__b-1', 'a__b-1.pred'))).toMatchObject({ instance_id: 'a__b-1' });
  expect(await readFile(join(path, 'run_batch_exit_statuses.yaml'), 'utf8')).toContain('- a__b-2');
});

test('several rollouts of an instance lie in a tree each', async () => {
  const stored = await storedRollouts([{}, {}]);
  const { path } = await stored.exported('mini-swe-agent', 'trajs');
  expect((await readdir(path)).sort()).toEqual(['sample-0', 'sample-1']);
  expect(await readdir(join(path, 'sample-1'))).toContain('preds.json');
});

test('mini-swe-agent 1.1 keeps the messages and what ran; 1 is text', async () => {
  const path = await exported('mini-swe-agent', '1.1', 'msa');
  const two = await json(join(path, 'a__b-1', 'a__b-1.traj.json'));
  expect(two).toMatchObject({ trajectory_format: 'mini-swe-agent-1.1', instance_id: 'a__b-1' });
  expect(two.messages[2]).toMatchObject({
    ...toolTrajectory().messages[2],
    extra: { actions: [{ command: 'ls', tool_call_id: 'c1' }] },
  });
  expect(two.messages[3].extra).toMatchObject({ returncode: 0 });
  expect(two.messages.at(-1)).toMatchObject({ role: 'exit', extra: { exit_status: 'Submitted' } });
  const plain = await exported('mini-swe-agent', '1', 'msa');
  const one = await json(join(plain, 'a__b-1', 'a__b-1.traj.json'));
  expect(one.trajectory_format).toBe('mini-swe-agent-1');
  expect(one.messages.map(({ role }: { role: string }) => role)).not.toContain('tool');
  expect(one.messages[2].content).toBe('Look around.\n\n```bash\nls\n```');
});

test('openhands: events, verdict and patch; completions too', async () => {
  const [line] = await linesOf(await exported('openhands', 'output', 'output.jsonl'));
  expect(line).toMatchObject({
    instance_id: 'a__b-1',
    instruction: 'Fix x.',
    test_result: { git_patch: aPatch('2'), report: { resolved: true, failed_apply_patch: false } },
    metadata: { llm_config: { model: 'scripted-7b' } },
    error: null,
  });
  const history = line?.history as Record<string, unknown>[];
  expect(history.map((event) => event.action ?? event.observation)).toEqual(
    words`system message run run run run finish`,
  );
  expect(history.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  const path = await exported('openhands', 'completions', 'output.with_completions.jsonl.gz');
  const { gunzipSync } = await import('node:zlib');
  const first = JSON.parse(
    gunzipSync(await readFile(path))
      .toString()
      .split('\n')[0] ?? '',
  );
  expect(first.raw_completions).toEqual({
    messages: toolTrajectory().messages,
    tools: toolTrajectory().tools,
  });
});

test('atif: steps without gaps, observations under their calls, token ids of what was generated', async () => {
  const path = await exported('atif', '1.7', 'atif');
  const tools = await json(join(path, 'r1.a__b-1.0.trajectory.json'));
  expect(tools.steps.map(({ step_id }: { step_id: number }) => step_id)).toEqual([1, 2, 3, 4, 5]);
  expect(tools.steps[2]).toMatchObject({
    source: 'agent',
    tool_calls: [{ tool_call_id: 'c1', function_name: 'bash', arguments: { command: 'ls' } }],
    observation: { results: [{ source_call_id: 'c1' }] },
    metrics: { prompt_tokens: 100, completion_tokens: 10 },
  });
  const text = await json(join(path, 'r1.a__b-2.1.trajectory.json'));
  expect(text.steps[2].metrics.completion_token_ids).toHaveLength(90);
  expect(text.steps[2].metrics.logprobs).toHaveLength(90);
});

test("nemo-gym: the rows of its collector's X.jsonl, with token ids where they are known", async () => {
  const [tools, text] = await linesOf(await exported('nemo-gym', 'rows', 'X.jsonl'));
  expect(tools).toMatchObject({ _ng_task_index: 0, _ng_rollout_index: 0, reward: 1, resolved: true });
  // Trainers assert contiguous ids, so a rollout without token ids is masked.
  expect(tools).toMatchObject({
    mask_sample: true,
    failure_reason: expect.stringMatching(/^no_token_ids: /),
  });
  expect(text).toMatchObject({ instance_config: { mask_sample: false } });
  const output = (text?.response as { output: { generation_token_ids?: number[] }[] } | undefined)?.output;
  expect(output?.flatMap((item) => item.generation_token_ids ?? [])).toHaveLength(180);
  expect(text).toMatchObject({ _ng_task_index: 1, reward: 0, provenance: { run_id: 'r1' } });
});

test('nemo-gym: a conversation whose prompts rewrite the past is masked, and keeps its verdict', async () => {
  const stored = await storedRollouts([
    { trajectory: { ...madeTrajectory(3, 1), contiguous: false } },
    { trajectory: madeTrajectory(3, 1) },
  ]);
  const { code, path } = await stored.exported('nemo-gym', 'X.jsonl');
  expect(code).toBe(0);
  expect(await linesOf(path)).toMatchObject([
    {
      instance_config: { mask_sample: true },
      reward: 1,
      failure_reason: expect.stringContaining('not_contiguous'),
    },
    { instance_config: { mask_sample: false }, reward: 1 },
  ]);
});

test('tokens: parquet and safetensors with a manifest; what has no ids is counted', async () => {
  const stored = await storedRollouts([{}, { trajectory: madeTrajectory(3, 1) }]);
  for (const form of ['parquet', 'safetensors']) {
    const { path, ...ran } = await stored.exported('tokens', form, '--form', form);
    expect(ran).toMatchObject(exited(10, /1 without token ids: .*--require-tokens/));
    const manifest = await json(join(path, '_manifest.json'));
    expect(manifest.shards).toEqual([{ file: `shard-00000.${form}`, rows: 1, rollouts: 1 }]);
    expect((await readdir(path)).sort()).toEqual(['_manifest.json', `shard-00000.${form}`]);
  }
  const { tensors } = await json(stored.at('safetensors/_manifest.json'));
  const bytes = await readFile(stored.at('safetensors/shard-00000.safetensors'));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + Number(bytes.readBigUInt64LE())));
  expect(Object.keys(header)).toEqual(['__metadata__', ...tensors]);
  const { parquetReadObjects, asyncBufferFromFile } = await import('hyparquet');
  const file = await asyncBufferFromFile(stored.at('parquet/shard-00000.parquet'));
  const [row] = await parquetReadObjects({ file });
  const turns = madeTrajectory(3, 1).turns.map(({ tokens }) => tokens);
  const ids = turns.flatMap((tokens) => [...(tokens?.prompt_suffix ?? []), ...(tokens?.generation ?? [])]);
  expect(row?.input_ids).toEqual(ids);
  expect(((row?.loss_mask ?? []) as number[]).filter((one) => one === 1)).toHaveLength(270);
  expect(((row?.log_probs ?? []) as number[])[180]).toBe(turns[0]?.log_probs[0]);
  expect(row).toMatchObject({ rollout_id: 'r1.a__b-1.1', reward: 1, resolved: true, segment: 0 });
});

test('parquet: everything that is stored, a row for each rollout', async () => {
  const path = await exported('parquet', 'parquet', 'all');
  const { parquetReadObjects, asyncBufferFromFile } = await import('hyparquet');
  const rows = await parquetReadObjects({
    file: await asyncBufferFromFile(join(path, 'shard-00000.parquet')),
  });
  expect(rows).toMatchObject([
    { rollout_id: 'r1.a__b-1.0', resolved: true, turns: 12n, test_log: 'PASSED t', has_tokens: false },
    { rollout_id: 'r1.a__b-2.1', resolved: false, has_tokens: true },
  ]);
  const messages = rows[0]?.messages as Record<string, unknown>[];
  expect(messages[2]).toMatchObject({
    role: 'assistant',
    content: 'Look around.',
    tool_calls: [{ id: 'c1', name: 'bash', arguments: '{"command":"ls"}' }],
  });
});

test('verifier: success is 1 or 0, and what has no verdict is counted', async () => {
  const stored = await storedRollouts([
    {},
    { over: { instance_id: 'a__b-2', resolved: false, reward: 0 } },
    { over: { instance_id: 'a__b-3', resolved: null, reward: null } },
  ]);
  const { path, ...ran } = await stored.exported('verifier', 'v.jsonl');
  expect(ran).toMatchObject(exited(10, '1 without a verdict'));
  expect((await linesOf(path)).map(({ instance_id, success }) => [instance_id, success])).toEqual([
    ['a__b-1', 1],
    ['a__b-2', 0],
  ]);
});
