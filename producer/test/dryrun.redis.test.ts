/** Tests `swefarm serve --replay` as a process: the real gateway with stored rollouts and a script of faults. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { post, type Reply, row } from '@swefarm/gateway/test/gym.ts';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import type { Result, Trajectory } from '@swefarm/shared';
import { bareFacts, madeTrajectory, until, words } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { readScript } from '../src/cli/dryrun.ts';
import { exited, run, start } from './cli.ts';
import { type StoredRollout, storeRollouts } from './stored.ts';

const TOKEN = 'a-token-of-this-test';
const INSTANCES = ['a__b-1', 'a__b-2'];
const STORED = 6;

/** Six rollouts of each instance; every third is resolved. */
const ROLLOUTS: StoredRollout[] = INSTANCES.flatMap((instance_id) =>
  Array.from({ length: STORED }, (_, at) => {
    const resolved = at % 3 === 0;
    const verdict = { resolved, reward: Number(resolved), reward_row: resolved ? 'resolved' : 'unresolved' };
    const facts = bareFacts({ resolved, exit_status: 'submitted' });
    const over = { instance_id, rollout_id: `r1.${instance_id}.${at}`, rollout_index: at, ...verdict, facts };
    return { over, trajectory: madeTrajectory(4, at) };
  }),
);

type Group = { instance_id: string; end: string; results: Result[] };

async function startDryRun(script = '', ...more: string[]) {
  const folder = await testFolder();
  await mkdir(join(folder, 'stored'));
  const results = await storeRollouts(join(folder, 'stored'), ROLLOUTS);
  const faults = join(folder, 'faults.yaml');
  await writeFile(faults, script);
  const own = words`--port 0 --state-dir ${join(folder, 'state')} --replay ${results} --faults ${faults}`;
  // A dry run ignores the Redis of a real farm.
  const env = {
    SWEFARM_GATEWAY_TOKEN: TOKEN,
    SWEFARM_REDIS_URL: 'redis://nobody:x@127.0.0.1:9',
    SWEFARM_REDIS_USERNAME: 'x',
  };
  const started = start(['serve', ...own, ...more], env);
  onTestFinished(async () => {
    started.child.kill('SIGTERM');
    await started.ended;
  });
  await until(() => started.stdout().includes('\n') || started.child.exitCode !== null);
  const { url } = JSON.parse(started.stdout() || JSON.stringify({ url: started.stderr() })) as {
    url: string;
  };
  const authorization = `Bearer ${TOKEN}`;
  const call = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    await fetch(url + path, {
      method,
      headers: { authorization, 'content-type': 'application/json', ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  const json = async <T>(method: string, path: string, body?: object): Promise<T> =>
    (await (await call(method, path, body)).json()) as T;
  const submit = async (
    group_size: number,
    settings: object = {},
    instances: readonly unknown[] = INSTANCES,
  ) => (await json<{ run_id: string }>('POST', '/v1/runs', { instances, group_size, run: settings })).run_id;
  /** Returns all groups of a run, which must end, in the order of their instances. */
  const groupsOf = async (runId: string): Promise<Group[]> => {
    const groups: Group[] = [];
    for (let after = '0'; ; ) {
      const path = `/v1/runs/${runId}/groups?wait_seconds=30&after=${after}`;
      const page = await json<{ groups: Group[]; last_id: string; done: boolean }>('GET', path);
      groups.push(...page.groups);
      if (page.done) return groups.toSorted((a, b) => a.instance_id.localeCompare(b.instance_id));
      after = page.last_id;
    }
  };
  return { ...started, folder, results, url, call, json, submit, groupsOf };
}

const TRAINING = { kind: 'training', policy: { require_tokens: true, version: 'step-9', model: 'm' } };

test('a run gets groups of stored rollouts, and all records name the dry run', async () => {
  const { call, json, submit, groupsOf, folder, url } = await startDryRun();
  const runId = await submit(4, TRAINING);
  const groups = await groupsOf(runId);
  expect(groups.map(({ instance_id, end }) => [instance_id, end])).toEqual(
    INSTANCES.map((id) => [id, 'mixed']),
  );
  for (const { results, instance_id } of groups) {
    const sources = results.map(({ dry_run }) => dry_run?.of ?? '');
    expect(new Set(sources).size).toBe(4);
    for (const of of sources) expect(of).toMatch(new RegExp(`^r1\\.${instance_id}\\.`));
    for (const { dry_run, reward, policy_version } of results) {
      const stored = Number(dry_run?.of?.split('.').at(-1));
      expect({ reward, policy_version }).toEqual({
        reward: Number(stored % 3 === 0),
        policy_version: 'step-9',
      });
    }
  }
  const [first] = groups[0]?.results ?? [];
  const trajectory = await json<Trajectory>('GET', `/v1/rollouts/${first?.rollout_id}/trajectory`);
  expect(trajectory.turns.map(({ spans }) => spans)).toEqual(
    Array(4).fill([{ version: 'step-9', tokens: 90 }]),
  );
  expect((await call('GET', '/v1/runs')).headers.get('x-swefarm-dry-run')).toBe('true');
  const page = await json<{ run: { dry_run?: true } }>('GET', `/v1/page/runs/${runId}`);
  expect(page.run.dry_run).toBe(true);

  const refused = await call('POST', '/v1/runs', { instances: ['z__z-1'], group_size: 1 });
  expect([refused.status, await refused.json()]).toMatchObject([422, { error: { code: 'not_stored' } }]);
  const asRow = await post(url, row({ instance_id: 'z__z-1' }));
  expect(asRow.status).toBe(422);

  const lines = groups
    .flatMap(({ results }) => results)
    .map((result) => JSON.stringify({ ...result, patch: '', report: null }));
  const collected = join(folder, 'collected.jsonl');
  await writeFile(collected, lines.join('\n'));
  const exported = await run(words`export ${collected} --format tokens --out ${join(folder, 'tokens')}`);
  expect(exported).toMatchObject(exited(2, /8 of a dry run, which no model sampled/));
});

test('the script can fail, cancel, change and withhold rollouts', async () => {
  const { json, submit, groupsOf } = await startDryRun(`
    concurrency: 1
    version: step-8
    rollouts:
      - {fail: sandbox_lost, nth: [1]}
      - {reward: none, nth: [2]}
      - {ids: not_contiguous, nth: [3]}
      - {versions: [step-7, step-8], nth: [4]}
      - {cancel: true, nth: [5]}
    groups:
      - {short: 1, nth: [2]}
      - {cancel: true, nth: [3]}
  `);
  const settings = { kind: 'training', order: 'given', policy: { model: 'm' } };
  const [group] = await groupsOf(await submit(6, settings, ['a__b-1']));
  const results = group?.results.toSorted((one, other) => one.rollout_index - other.rollout_index) ?? [];
  expect(
    results.map(
      ({ outcome, reward_row, failure }) => failure?.class ?? (outcome === 'judged' ? '' : reward_row),
    ),
  ).toEqual(['sandbox_lost', '', '', '', 'cancelled', '']);
  const [, withheld, rewritten, mixed, , plain] = results;
  expect(withheld).toMatchObject({ reward: null, reward_row: 'policy_time', exit_status: 'time_limit' });
  expect(mixed).toMatchObject({ policy_version_first: 'step-7', policy_version_last: 'step-8' });
  expect(mixed?.dry_run?.faults).toEqual(['versions: step-7, step-8']);
  expect(plain).toMatchObject({ policy_version: 'step-8', dry_run: { faults: [] } });
  const trajectoryOf = (one?: Result) =>
    json<Trajectory>('GET', `/v1/rollouts/${one?.rollout_id}/trajectory`);
  expect((await trajectoryOf(mixed)).turns.map(({ spans }) => spans?.map(({ version }) => version))).toEqual([
    ['step-7'],
    ['step-7'],
    ['step-7', 'step-8'],
    ['step-8'],
  ]);
  expect(await trajectoryOf(rewritten)).toMatchObject({ contiguous: false });

  const others = await groupsOf(await submit(3, settings));
  const ends = others.map(({ end, results: own }) => [
    end,
    own
      .map(({ outcome }) => outcome)
      .sort()
      .join(' '),
  ]);
  expect(ends).toEqual([
    ['short', 'failed failed judged'],
    ['cancelled', 'cancelled cancelled cancelled'],
  ]);
});

test('a session gets the stored outputs in order, then the stored verdict', async () => {
  const { json } = await startDryRun('', '--replay-any');
  const { session_id: id } = await json<{ session_id: string }>('POST', '/v1/sessions', {
    ...{ request_id: 'one', instance_id: 'z__z-9', inputs: 'all' },
  });
  type Answer = { state: string; observation: string; result?: Result; content?: string };
  const ask = async (path: string, body: object): Promise<Answer> => {
    for (;;) {
      const answer = await json<Answer>('POST', `/v1/sessions/${id}/${path}`, { ...body, wait_s: 20 });
      if (answer.state !== 'waiting' && answer.state !== 'grading') return answer;
    }
  };
  const first = await ask('commands', { seq: 1, command: 'ls -la && git log --oneline | head -3' });
  expect(first.observation).toBe(
    '<returncode>0</returncode>\n<output>\ntotal 48\npkg\ntests\nREADME.md\n</output>',
  );
  const other = await ask('commands', { seq: 2, command: 'make' });
  expect(other.observation).toContain(
    '[dry run: the stored rollout ran this here: grep -rn "def merge" pkg]\npkg/core.py',
  );
  expect(await ask('files/read', { seq: 3, path: '/x', max_bytes: 9 })).toMatchObject({
    error: { code: 'not_a_file', message: 'a dry run has no files' },
  });
  const { result } = await ask('submit', {});
  expect(result).toMatchObject({
    outcome: 'judged',
    turns: 3,
    dry_run: { of: expect.stringMatching(/^r1\./) },
  });
  expect(result?.reward).toBe(Number(Number(result?.dry_run?.of?.split('.').at(-1)) % 3 === 0));
});

const CALLS = 500;
const FAULTS = `
seed: 5
delay: {from: 0, to: 0.2}
rollouts: [{fail: sandbox_lost, chance: 0.05}, {delay: 1, chance: 0.02}]
http:
  - {route: /run, cut: answer, chance: 0.1}
  - {route: /run, status: 503, retry_after: 1, every: 13}
  - {route: /run, gone: 0.3, nth: [150, 300]}
  - {route: /run, delay: {median: 0.05}, chance: 0.1}
  - {route: /v1/runs, repeat: true, chance: 0.5}
`;

test(`${CALLS} calls under faults get one rollout each, with one result`, async () => {
  const { url, json } = await startDryRun(FAULTS);
  let broken = 0;
  let refused = 0;
  const askOnce = async (name: string): Promise<Reply | null> => {
    try {
      const body = row({ instance_id: INSTANCES[name.length % 2], _ng_rollout_id: name, _ng_task_index: 0 });
      const reply = await post(url, body);
      if (reply.status === 200) return (await reply.json()) as Reply;
      expect(reply.status).toBe(503);
      refused += 1;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      broken += 1;
    }
    return null;
  };
  const ask = async (name: string): Promise<Reply> => {
    for (;;) {
      const reply = await askOnce(name);
      if (reply) return reply;
    }
  };
  const names = Array.from({ length: CALLS }, (_, at) => `call-${at}`);
  const replies: Reply[] = [];
  const left = names.values();
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      for (const name of left) replies.push(await ask(name));
    }),
  );
  expect(new Set(replies.map(({ rollout_id }) => rollout_id)).size).toBe(CALLS);
  expect(broken).toBeGreaterThan(CALLS / 20);
  expect(refused).toBeGreaterThan(CALLS / 20);
  for (const { dry_run } of replies) expect(dry_run).toMatchObject({ of: expect.any(String) });

  const { runs } = await json<{ runs: { run_id: string; dry_run: boolean }[] }>('GET', '/v1/runs');
  const results = new Map<string, string>();
  let delivered = 0;
  for (const { run_id } of runs) {
    for (let after = '0'; ; ) {
      const path = `/v1/runs/${run_id}/results?count=50&after=${after}`;
      const page = await json<{ results: Result[]; last_id: string }>('GET', path);
      for (const result of page.results) {
        const text = JSON.stringify(result);
        expect(results.get(result.rollout_id) ?? text).toBe(text);
        results.set(result.rollout_id, text);
      }
      delivered += page.results.length;
      if (page.results.length === 0) break;
      after = page.last_id;
    }
  }
  expect(runs.every(({ dry_run }) => dry_run)).toBe(true);
  for (const { rollout_id } of replies) expect(results.has(rollout_id)).toBe(true);
  // A call whose rollout fails gets 503. When the call is repeated, it gets another rollout.
  const failed = [...results.values()].filter((text) => text.includes('"outcome":"failed"'));
  expect(failed.length).toBeGreaterThan(0);
  expect(results.size).toBe(CALLS + failed.length);
  expect(delivered).toBeGreaterThan(results.size);
});

test.each([
  ['rollouts:\n  - {fail: policy_slo}', /line 2: rollouts\.0\.fail: Invalid option/],
  ['seed: 1\nhttp:\n  - {cut: answer, chanse: 1}', /line 3: http\.0\.chanse: Unrecognized key/],
  ['delay:\n  from: 1', /line 2: delay: expected seconds, \{from, to\}/],
  ['rollouts:\n  - {chance: 0.5}', /line 2: rollouts\.0: expected exactly one of fail, reward/],
  ['a: [', /faults\.yaml: /],
])('a mistake in the script is named with its line: %j', async (script, message) => {
  const folder = await testFolder();
  await writeFile(join(folder, 'faults.yaml'), script);
  await expect(readScript(join(folder, 'faults.yaml'))).rejects.toThrow(message);
});

test.each([
  [words`--faults x.yaml`, /--replay-any and --faults need --replay FILE/],
  [words`--replay none.jsonl`, /--replay none\.jsonl: no such file/],
  [words`--replay x --redis-url redis://h`, /--replay starts a Redis of its own/],
])('%j is refused by name', async (args, message) => {
  expect(await run(['serve', ...args])).toMatchObject(exited(2, message));
});
