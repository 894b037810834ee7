/** Tests that released programs from PyPI read the files that `swefarm export` writes for them. */
import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { officialReport } from '@swefarm/grading';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { madeTrajectory, words } from '@swefarm/testkit';
import { instanceFolder, writeFolder } from '@swefarm/trajectories';
import { aReport } from '@swefarm/trajectories/test/result.ts';
import { beforeAll, expect, test } from 'vitest';
import { linesOf, run } from './cli.ts';
import { storeRollouts, toolTrajectory } from './stored.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CLIENTS = join(ROOT, 'testkit/clients/training');
const VENVS = join(ROOT, '.swefarm/cache/venvs/training');
const SCRIPTS = { readers: 'readers.py', swesmith: 'smith.py', agents: 'agents.py' } as const;
const execute = promisify(execFile);

const EXPORTS = [
  ['sft-messages', 'jsonl', 'sft.jsonl'],
  ['swesmith-xml', 'xml', 'ft_xml.jsonl'],
  ['swesmith-xml', 'tool', 'ft_tool.jsonl'],
  ['verifier', 'jsonl', 'verifier.jsonl'],
  ['openhands', 'output', 'openhands.jsonl'],
  ['openhands', 'completions', 'output.with_completions.jsonl.gz'],
  ['tokens', 'parquet', 'tokens'],
  ['tokens', 'safetensors', 'safetensors'],
  ['parquet', 'parquet', 'everything'],
  ['preds', 'jsonl', 'preds.jsonl'],
  ['preds', 'json', 'preds.json'],
  ['mini-swe-agent', '1', 'mini-1'],
  ['mini-swe-agent', '1.1', 'mini-1.1'],
  ['swe-agent', 'tree', 'swe-agent'],
  ['atif', '1.7', 'atif'],
] as const;

beforeAll(async () => {
  await execute('bash', [join(CLIENTS, 'setup.sh'), VENVS]);
}, 1_200_000);

async function exported(): Promise<string> {
  const folder = await testFolder();
  const results = await storeRollouts(folder, [
    {},
    { over: { instance_id: 'a__b-2', resolved: false, reward: 0 }, trajectory: madeTrajectory(4, 1) },
  ]);
  for (const [format, form, name] of EXPORTS) {
    const args = ['export', results, '--format', format, '--form', form, '--out', join(folder, name)];
    expect([0, 10]).toContain((await run(args)).code);
  }
  for (const instance_id of ['a__b-1', 'a__b-2']) {
    const report = aReport({ instance_id, grader: 'swesmith-0.0.9' });
    const official = officialReport(report, { log: 'PASSED', model: 'm', timeoutSeconds: 90 });
    const prediction = { instance_id, model_name_or_path: 'm' };
    await writeFolder(instanceFolder(folder, 'reports', prediction, report.grader), {
      ...{ patch: '', log: '', script: null, testOutput: 'PASSED', report: official },
    });
  }
  return folder;
}

async function asked(client: keyof typeof SCRIPTS, folder: string) {
  const python = join(VENVS, client, 'bin/python');
  const { stdout } = await execute(python, [join(CLIENTS, SCRIPTS[client]), folder], {
    maxBuffer: 64 * 1024 ** 2,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

test('pandas, pyarrow, datasets, sb-cli and mini-swe-agent read our files', async () => {
  const found = await asked('readers', await exported());
  for (const name of ['sft', 'ft_xml', 'ft_tool', 'verifier', 'openhands']) {
    expect(found[name].ids, name).toEqual(['a__b-1', 'a__b-2']);
  }
  expect(found.sft.columns).toEqual(['instance_id', 'messages', 'model', 'resolved', 'swefarm', 'tools']);
  expect(found.completions).toBe(toolTrajectory().messages.length);
  expect(found.tokens).toMatchObject({ rows: 1, lengths: [[1080, 1080, 1080]], trained: [360] });
  expect(found.tokens.types).toMatchObject({ reward: 'double', resolved: 'bool' });
  expect(found.everything).toEqual({ rows: 2, resolved: [true, false], first: 'Look around.' });
  expect(found.predictions).toEqual([2, 2]);
  // A step of its inspector is an answer with its observations; the prompt and the end may be steps too.
  for (const counts of Object.values<number[]>(found.inspector)) {
    expect(counts).toHaveLength(2);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(3);
  }
});

test("swesmith's collection agrees with our .traj files; swebench and safetensors read theirs", async () => {
  const folder = await exported();
  const found = await asked('swesmith', folder);
  type Line = { messages: { role: string; content: string }[] };
  const ours = (await linesOf(join(folder, 'ft_xml.jsonl'))) as unknown as (Line & { instance_id: string })[];
  for (const { instance_id, messages } of ours) {
    const theirs = (found.xml[instance_id] as Line).messages;
    const all = (list: Line['messages']) => list.slice(1).map(({ role, content }) => `${role}: ${content}`);
    if (instance_id === 'a__b-1') expect(all(theirs)).toEqual(all(messages).slice(0, theirs.length - 1));
    expect(theirs.map(({ role }) => role)).toEqual(messages.slice(0, theirs.length).map(({ role }) => role));
  }
  expect(Object.keys(found.tool)).toHaveLength(2);
  expect(found.ticks['a__b-1'].messages[2].content).toBe('Look around.\n\n```\nls\n```');
  expect(found.xml['a__b-1']).toMatchObject({ resolved: true, model: 'scripted-7b' });
  expect(found.predictions).toBe(2);
  expect(found.tensors).toMatchObject({
    input_ids: ['int32', [1080]],
    loss_mask: ['uint8', [1080]],
    log_probs: ['float32', [1080]],
    offsets: ['int64', [2]],
  });
});

test("Harbor's validator accepts the ATIF files, and OpenHands' events equal output.jsonl", async () => {
  const made = madeTrajectory(4, 1);
  const found = await asked('agents', await exported());
  const sum = made.turns.reduce(
    (all, { tokens }) => all + (tokens?.log_probs.reduce((a, b) => a + b, 0) ?? 0),
    0,
  );
  expect(found.atif).toMatchObject({
    'a__b-1': { errors: [], sources: ['system', 'user', 'agent', 'agent', 'agent'], tokens: 0 },
    'a__b-2': { errors: [], sources: ['system', 'user', 'agent', 'agent', 'agent', 'agent'], tokens: 360 },
  });
  expect(found.atif['a__b-1'].calls[0]).toEqual({ command: 'ls' });
  expect(found.atif['a__b-2'].logprobs).toBeCloseTo(sum, 6);
  const [first, second] = ['a__b-1', 'a__b-2'].map(
    (id) => found.openhands[id] as [string, { args?: object }][],
  );
  const names = (events: typeof first) => events?.map(([name]) => name);
  const worked = ['CmdRunAction', 'CmdOutputObservation'];
  expect(names(first)).toEqual(
    words`SystemMessageAction MessageAction ${worked} ${worked} AgentFinishAction`,
  );
  expect(names(second)).toEqual([
    'SystemMessageAction',
    'MessageAction',
    ...[1, 2, 3, 4].flatMap(() => worked),
  ]);
  expect(first?.[2]?.[1]).toMatchObject({ args: { command: 'ls', thought: 'Look around.' } });
  expect(first?.[3]?.[1]).toMatchObject({ extras: { command: 'ls', metadata: { exit_code: 0 } } });
});
