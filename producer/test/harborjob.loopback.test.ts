/** Tests `swefarm export --format harbor`. testkit/clients/harbor/ reads such a folder with Harbor's own classes. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import type { CollectedArtifact } from '@swefarm/shared';
import { madeTrajectory, writeLines } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { aPatch, type StoredRollout, storedRollouts } from './stored.ts';

const json = async (...path: string[]) => JSON.parse(await readFile(join(...path), 'utf8'));

/** Exports the rollouts. Returns the folder of the job, and the results of its trials in the order of the rollouts. */
async function exportedJob(rollouts: readonly StoredRollout[], ...options: string[]) {
  const stored = await storedRollouts(rollouts);
  const { path, code, stderr } = await stored.exported('harbor', 'jobs/mine', ...options);
  expect(code, stderr).toBe(0);
  const names = (await readdir(path)).filter((name) => !name.endsWith('.json'));
  const results = await Promise.all(names.map((name) => json(path, name, 'result.json')));
  const index = ({ agent_result }: { agent_result: { metadata: { swefarm: { rollout_id: string } } } }) =>
    agent_result.metadata.swefarm.rollout_id.split('.').at(-1) ?? '';
  return { path, trials: results.toSorted((a, b) => index(a).localeCompare(index(b))) };
}

const RESOLVED = { resolved: true, reward: 1 };
const UNRESOLVED = { resolved: false, reward: 0 };

test('a trial has reward, trajectory, test log, patch and times', async () => {
  const { path, trials } = await exportedJob([{ over: RESOLVED }]);
  const [trial] = trials;
  expect(trial).toMatchObject({
    task_name: 'a__b-1',
    trial_name: expect.stringMatching(/^a__b-1__[0-9a-f]{16}$/),
    trial_uri: `${pathToFileURL(path).href}/${trial.trial_name}`,
    config: { task: { path: 'a__b-1' }, trials_dir: path },
    agent_info: { name: 'swefarm', model_info: { name: 'scripted-7b', provider: null } },
    verifier_result: { rewards: { reward: 1 } },
    exception_info: null,
  });
  expect(Date.parse(trial.verifier.finished_at)).toBe(Date.parse(trial.finished_at));
  expect(Date.parse(trial.agent_execution.finished_at)).toBe(Date.parse(trial.verifier.started_at));
  const folder = join(path, trial.trial_name);
  expect(
    (await readdir(folder, { recursive: true, withFileTypes: true }))
      .filter((one) => one.isFile())
      .map(({ name }) => name)
      .sort(),
  ).toEqual([
    'config.json',
    'manifest.json',
    'patch.diff',
    'report.json',
    'result.json',
    'reward.txt',
    'test-stdout.txt',
    'trajectory.json',
  ]);
  expect(await json(folder, 'agent/trajectory.json')).toMatchObject({ session_id: 'r1.a__b-1.0' });
  expect(await readFile(join(folder, 'verifier/reward.txt'), 'utf8')).toBe('1\n');
  expect(await readFile(join(folder, 'artifacts/logs/artifacts/patch.diff'), 'utf8')).toBe(aPatch('2'));
});

test('a trial of a Harbor task has its artifacts in place of a patch', async () => {
  const bytes = (text: string): Int8Array => Int8Array.from(Buffer.from(text));
  const files = [
    { path: 'deep' },
    { path: 'deep/run', mode: 0o755, content: bytes('\xff') },
    { path: 'link', link: 'deep/run' },
    { path: 'none' },
  ];
  const collected = [
    { source: '/app', destination: 'kept', exclude: ['*.o'], type: 'directory', status: 'ok', files },
    {
      ...{ source: '/out.txt', destination: 'out.txt', exclude: [], type: 'file', status: 'ok' },
      files: [{ path: '', content: bytes('one') }],
    },
    { source: '/gone', destination: 'gone', exclude: [], type: 'directory', status: 'failed', files: [] },
  ] as const satisfies CollectedArtifact[];
  const { path, trials } = await exportedJob([{ over: RESOLVED, patch: '', collected: [...collected] }]);
  const folder = join(path, trials[0].trial_name, 'artifacts');
  expect((await readdir(folder, { recursive: true })).sort()).toEqual([
    'kept',
    'kept/deep',
    'kept/deep/run',
    'kept/link',
    'kept/none',
    'manifest.json',
    'out.txt',
  ]);
  expect(await readFile(join(folder, 'kept/link'), 'utf8')).toBe('\xff');
  expect((await stat(join(folder, 'kept/deep/run'))).mode & 0o777).toBe(0o755);
  expect(await json(folder, 'manifest.json')).toEqual([
    {
      ...{ source: '/app', destination: 'artifacts/kept', type: 'directory', status: 'ok' },
      ...{ service: null, exclude: ['*.o'] },
    },
    expect.objectContaining({ destination: 'artifacts/out.txt', type: 'file', exclude: [] }),
    expect.objectContaining({ source: '/gone', status: 'failed' }),
  ]);
});

test('the job counts its trials as Harbor does', async () => {
  const { path } = await exportedJob([
    ...[RESOLVED, UNRESOLVED].map((over) => ({ over })),
    ...[RESOLVED, RESOLVED].map((over) => ({ over: { ...over, instance_id: 'a__b-2' } })),
  ]);
  const { stats, n_total_trials } = await json(path, 'result.json');
  expect(n_total_trials).toBe(4);
  const [evaluation] = Object.values<Record<string, unknown>>(stats.evals);
  expect(evaluation).toMatchObject({
    n_trials: 4,
    n_errors: 0,
    metrics: [{ mean: 0.75 }],
    pass_at_k: { 2: 1 },
    reward_stats: { reward: { 0: [expect.any(String)], 1: expect.any(Array) } },
  });
  expect(await json(path, 'config.json')).toMatchObject({
    job_name: basename(path),
    jobs_dir: dirname(path),
    n_attempts: 2,
    tasks: [{ path: 'a__b-1' }, { path: 'a__b-2' }],
  });
});

test("failures have Harbor's exceptions, and a timed-out agent has its reward", async () => {
  const failed = {
    outcome: 'failed',
    resolved: null,
    reward: null,
    failure: { stage: 'policy', class: 'policy_unauthorized', message: 'refused', attempts: 1 },
  } as const;
  const { path, trials } = await exportedJob(
    [
      { over: failed },
      { over: { ...RESOLVED, exit_status: 'time_limit' } },
      { over: { ...UNRESOLVED, exit_status: 'turn_limit' } },
    ],
    '--with-failed',
  );
  expect(
    trials.map(({ exception_info, verifier_result }) => [
      exception_info?.exception_type ?? null,
      verifier_result?.rewards.reward ?? null,
    ]),
  ).toEqual([
    ['AgentAuthenticationError', null],
    ['AgentTimeoutError', 1],
    [null, 0],
  ]);
  const { stats } = await json(path, 'result.json');
  expect(stats).toMatchObject({ n_completed_trials: 3, n_errored_trials: 2 });
  const text = await readFile(join(path, trials[0].trial_name, 'exception.txt'), 'utf8');
  expect(text).toContain('policy_unauthorized: refused');
});

test('the shown id of an instance is the task name, as in dataset to-harbor', async () => {
  const row = {
    ...{ instance_id: 'a__b-1', shown_id: 'project-1', repo: 'a/b', base_commit: 'f00dfeed', image: 'i:1' },
    ...{ problem_statement: 'x', FAIL_TO_PASS: ['t'], PASS_TO_PASS: [], family: 'custom' },
    plan: { grader: 'own', script: 'true', outcomes: { from: 'exit_code' }, verdict: { rule: 'exit_code' } },
  };
  const dataset = await writeLines(join(await testFolder(), 'rows.jsonl'), [row]);
  const { trials } = await exportedJob([{ over: RESOLVED }], '--dataset', dataset);
  expect(trials[0]).toMatchObject({ task_name: 'project-1', config: { task: { path: 'project-1' } } });
});

test('an unknown failure class and a long instance id are exported', async () => {
  const failure = { stage: 'policy', class: 'a_new_class', message: 'm', attempts: 1 } as never;
  const instance_id = `${'a'.repeat(31)}\u{1F600}b`;
  const line = { instance_id, outcome: 'failed', resolved: null, reward: null, failure } as const;
  const { trials } = await exportedJob([{ line }], '--with-failed');
  expect(trials[0]).toMatchObject({
    trial_name: expect.stringMatching(/^a{31}\u{1F600}__[0-9a-f]{16}$/u),
    exception_info: { exception_type: 'RuntimeError' },
  });
});

test.each([
  ['a slash in the instance id', { instance_id: 'a/b' }, /a\/b cannot be the name of a folder/],
  ['a time that is no date', { finished_at: 9e15 }, /times cannot be written as dates/],
])('%s is refused', async (_, line, why) => {
  const stored = await storedRollouts([{ over: RESOLVED, line }]);
  const { code, stderr } = await stored.exported('harbor', 'job');
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(why) });
});

test('--form tokens exports the whole prompt and the answer of each turn', async () => {
  const trajectory = madeTrajectory(3, 1);
  const { trials } = await exportedJob([{ trajectory }], '--form', 'tokens');
  const [{ prompt_token_ids: prompts, completion_token_ids: answers, logprobs }] =
    trials[0].agent_result.rollout_details;
  expect(answers).toEqual(trajectory.turns.map(({ tokens }) => [...(tokens?.generation ?? [])]));
  expect(logprobs.map((one: number[]) => one.length)).toEqual(answers.map((one: number[]) => one.length));
  for (const [at, prompt] of prompts.entries()) {
    if (at === 0) continue;
    const before = [...prompts[at - 1], ...answers[at - 1]];
    expect(prompt.slice(0, before.length)).toEqual(before);
  }
});
