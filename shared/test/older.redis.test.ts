/**
 * Two versions with one Redis: this version reads records of 0.1.0, and 0.1.0 can read the records of this version. This file contains
 * the forms of 0.1.0; testkit/test/e2e/upgrade.full.test.ts runs an earlier commit.
 */
import { rawRedis } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { decide, RolloutJob, WorkerRecord } from '../src/index.ts';
import { openFarm } from '../src/redis/farm.ts';
import { testConfig, testInstance, testResult, testRun } from './farm.ts';

const RUN = 'old';
const GROUP = 'a__b.c-1';
const id = (index: number): string => `${RUN}.${GROUP}.${index}`;

const RECORD = `{"format":"swefarm-run-1","run_id":"old","created_at":"2026-01-02T03:04:05.000Z","kind":"training",
"dataset":{"path":"rows.jsonl","sha256":"ab","instances":1},"group_size":4,"deadline_at":null,"min_group":null,"oversample":0,
"refills":1,"max_staleness":null,"infra_pause_share":0.5,"open":false,"needs":1,"agent":{"type":"mini","action":"fenced","prompts":"default",
"prompt_overrides":{},"step_limit":250,"step_timeout":60,"time_limit":3600,"context_limit":null,"format_limit":3,
"collapse_limit":3,"observation_limit":10000,"patch_source":"tree"},"policy":{"urls":["http://h:1/v1"],"model":"m",
"api_key_ref":"policy-old","sampling":{"temperature":1},"extra_body":{},"token_mode":"text","tokenizer":null,
"require_tokens":false,"version":"v1","name":null,"request_timeout":600,"patience":60},"sandbox":{"agent_network":"none",
"eval_network":"none","cpus":1,"memory_bytes":4294967296,"pids":512,"disk_bytes":null,"activate":"","workdir":"/testbed"},
"evaluation":{"enabled":true,"grader":"auto","timeout":1800,"log_limit":67108864,"envelope":{}},
"reward":{"table":"default","hash":"cd","overrides":{},"host":false},"ttl":604800}`;
const JOB = `{"rollout_id":"old.a__b.c-1.0","run_id":"old","instance_id":"a__b.c-1","rollout_index":0,"submitted_at":1,"image":"x:1"}`;
const JOURNAL = `[{"attempt":1,"worker":"w8","node":"n8","claim":"kq0x","claimed_at":1767323045123,"ended_at":1767323046123,
"end":{"stage":"sandbox","class":"sandbox_lost","cause":"gone"}},
{"attempt":2,"worker":"w9","node":"n9","claim":"kq0y","claimed_at":1767323047123,"ended_at":null,"end":null}]`;
const WORKER = `{"worker":"w9","node":"n9","runtime":"rootfs","slots":4,"active":1,"started_at":1,"metrics":null,"paused":null,"placed":true,
"software_version":"0.1.0+0123456789ab","understands":1}`;

const oldResult = (index: number): string =>
  JSON.stringify(testResult(RUN, index, { claim: 'kq0w', software_version: '0.1.0+0123456789ab' }));

const Seconds = z.record(z.string(), z.number());
/** Required keys of a result and of a journal entry in 0.1.0. */
const OldResult = z.object({
  ...{ format: z.literal('swefarm-result-1'), run_id: z.string(), rollout_id: z.string() },
  ...{
    instance_id: z.string(),
    rollout_index: z.int(),
    attempt: z.int(),
    worker: z.string(),
    node: z.string(),
  },
  ...{ runtime: z.string(), outcome: z.enum(['judged', 'failed', 'cancelled']), turns: z.int() },
  ...{ resolved: z.boolean().nullable(), reward: z.number().nullable(), reward_row: z.string() },
  ...{ reward_table: z.string(), policy_version: z.string().nullable(), seconds: Seconds },
  tokens: z.object({ prompt: z.int(), completion: z.int() }),
  ...{ artifact: z.string().nullable(), finished_at: z.number() },
});
const OldEntry = z.object({
  ...{
    attempt: z.int().positive(),
    claim: z.string(),
    worker: z.string(),
    node: z.string(),
    claimed_at: z.number(),
  },
  ...{ ended_at: z.number().nullable(), end: z.object({ class: z.string() }).nullable() },
});

async function oldFarm() {
  const config = testConfig();
  const farm = await openFarm(config, 'worker');
  const send = rawRedis(farm);
  const key = `${config.redis_prefix}:run:${RUN}`;
  // This version writes the run; then a record of 0.1.0 replaces its record.
  await farm.runs.create(testRun({ run_id: RUN, kind: 'training', group_size: 4 }), [testInstance()]);
  await send('SET', key, RECORD, 'KEEPTTL');
  return { farm, send, key, prefix: config.redis_prefix };
}

test('records of 0.1.0 are read', async () => {
  const { farm, send, key, prefix } = await oldFarm();
  await using _ = farm;
  expect(await farm.runs.get(RUN)).toMatchObject({ needs: 1, policy: { api_key_ref: 'policy-old' } });
  expect((await farm.groups.unfinishedRuns()).unreadable).toEqual([]);
  expect(RolloutJob.parse(JSON.parse(JOB)).rollout_id).toBe(id(0));
  await send('HSET', `${key}:journal`, id(0), JOURNAL);
  const streamId = String(await send('XADD', `${key}:results`, '*', 'r', oldResult(1)));
  await send('HSET', `${key}:committed`, id(1), `1 judged ${streamId} w9\tkq0w`);
  await send('HINCRBY', `${key}:groups`, `${GROUP} left`, -1);
  await send('SET', `${prefix}:worker:w9`, WORKER, 'PX', 15_000);
  await send('ZADD', `${prefix}:workers`, Date.now() + 15_000, 'w9');
  expect(await farm.registry.list()).toEqual([WorkerRecord.parse(JSON.parse(WORKER))]);
  expect(decide((await farm.journal.read(id(0))).slice(0, 1))).toMatchObject({ action: 'run' });
  expect((await farm.results.read(RUN, '0')).results).toMatchObject([{ result: { attempt: 1, reward: 1 } }]);
  expect((await farm.results.winners(RUN, [id(1)])).get(id(1))).toMatchObject({ claim: 'kq0w' });
  expect(await farm.groups.open(RUN)).toEqual([id(0), id(2), id(3)]);
  const again = await farm.journal.claim(id(1), { worker: 'w1', node: 'n1' });
  expect(again).toMatchObject({ status: 'committed', attempt: 1, outcome: 'judged' });
  const next = await farm.journal.claim(id(0), { worker: 'w1', node: 'n1' });
  expect(next).toMatchObject({ status: 'claimed', attempt: 3, previous: [{ attempt: 1 }, { attempt: 2 }] });
});

test('records that this version writes can be read by 0.1.0', async () => {
  const { farm, send, key } = await oldFarm();
  await using _ = farm;
  const run = await farm.runs.get(RUN);
  if (!run) throw new Error('the run is gone');
  const claim = await farm.journal.claim(id(2), { worker: 'w1', node: 'n1' });
  if (claim.status !== 'claimed') throw new Error(claim.status);
  const journal = z.array(OldEntry).parse(JSON.parse(String(await send('HGET', `${key}:journal`, id(2)))));
  expect(journal).toMatchObject([{ attempt: 1, worker: 'w1', ended_at: null }]);
  const result = testResult(RUN, 2, { claim: claim.claim, software_version: '9.9.9+0123456789ab' });
  await farm.commit(run, result);
  const [attempt, outcome, streamId, ...worker] = String(await send('HGET', `${key}:committed`, id(2))).split(
    ' ',
  );
  expect([attempt, outcome]).toEqual(['1', 'judged']);
  expect(streamId).toMatch(/^\d+-\d+$/);
  expect(worker.join(' ')).toBe(`w1\t${claim.claim}`);
  const [[, fields]] = (await send('XRANGE', `${key}:results`, '-', '+')) as [[string, string[]]];
  expect(OldResult.parse(JSON.parse(fields[1] ?? ''))).toMatchObject({ rollout_id: id(2), reward: 1 });
});
