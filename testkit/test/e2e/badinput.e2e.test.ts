/** Tests faults around a rollout: each gives a clear message and the right exit code, loses no result and invents no reward. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startFaultProxy } from '../../src/faultproxy.ts';
import { startCommand, words } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { run } from '../../src/launchers/run.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import type { FaultRuleInput } from '../../src/policy/faults.ts';
import { conversation, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

const scene = openScene();
let dataset = '';
let policy: Awaited<ReturnType<typeof startScriptedPolicy>>;
const SCRIPT = { model: 'scripted', ...conversation(running('echo hi')) };
let outputs = 0;
const nextOutput = (): string => join(scene.folder, `out-${++outputs}.jsonl`);

const lines = (path: string): Promise<Line[]> => readLines(path);

// --no-probe: the faults must hit running rollouts. The endpoint check has its own tests.
const golden = (output: string, rows = dataset): string[] =>
  words`rollout --no-probe --dataset ${rows} --agent golden --runtime docker --output ${output}`;

const mini = (output: string): string[] =>
  words`rollout --dataset ${dataset} --agent mini --runtime docker --concurrency 1 --output ${output}
    --model scripted --patience 1 --request-timeout 3 --step-limit 3 --no-eval`;

beforeAll(async () => {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'docker', out: scene.folder });
  dataset = built.files.default;
  policy = await startScriptedPolicy({ script: SCRIPT });
});
afterAll(() => policy[Symbol.asyncDispose]());

// Failures are retried with growing pauses, so the tests run concurrently.
describe.concurrent('the policy endpoint', () => {
  const cases: [name: string, rule: FaultRuleInput, expected: string][] = [
    ['401', { kind: 'unauthorized' }, 'policy_unauthorized'],
    ['404 model', { kind: 'model_unknown' }, 'policy_model_unknown'],
    ['500', { kind: 'server_error' }, 'policy_server_error'],
    ['garbage', { kind: 'garbage' }, 'policy_garbage'],
    ['silence', { kind: 'silence' }, 'policy_silent'],
  ];
  test.each(cases)('answers %s', async (_name, rule, expected) => {
    await using broken = await startScriptedPolicy({ script: SCRIPT, faults: [rule] });
    const output = nextOutput();
    expect((await scene.swefarm`${mini(output)} --policy-url ${broken.url}`).code).toBe(10);
    expect(await lines(output)).toMatchObject([
      { outcome: 'failed', reward: null, resolved: null, failure: { stage: 'policy', class: expected } },
    ]);
  });

  test('refuses connections', async () => {
    const output = nextOutput();
    const { code, stderr } =
      await scene.swefarm`${mini(output)} --no-probe --policy-url http://127.0.0.1:9/v1`;
    expect(code).toBe(10);
    expect(stderr).toContain('policy_unreachable');
    expect(await lines(output)).toMatchObject([
      { outcome: 'failed', reward: null, failure: { class: 'policy_unreachable' } },
    ]);
  });
});

describe.concurrent('the artifact store', () => {
  test('its disk is full', async () => {
    const small = join(scene.folder, 'small');
    await mkdir(small);
    await run('mount', words`-t tmpfs -o size=8k tmpfs ${small}`);
    try {
      await writeFile(join(small, 'filler'), Buffer.alloc(8192)).catch(() => undefined);
      const output = nextOutput();
      const { code, stderr } = await scene.swefarm`${golden(output)} --artifacts dir:${small}`;
      expect(code, stderr).toBe(10);
      expect(await lines(output)).toMatchObject([
        { outcome: 'failed', reward: null, failure: { stage: 'worker', class: 'artifact_store' } },
      ]);
      expect(stderr).toMatch(/no space|disk|ENOSPC/i);
    } finally {
      await run('umount', ['-l', small]);
    }
  });

  test('its budget is reached: workers stop claiming until there is free space', async () => {
    await using redis = await startRedis();
    const farm = openScene({ SWEFARM_REDIS_URL: redis.url });
    const artifacts = join(scene.folder, 'budget');
    await mkdir(artifacts);
    const flags = words`--runtime docker --artifacts dir:${artifacts}`;
    const worker = await farm.worker`${flags} --concurrency 1 --artifact-budget-bytes 1`;
    const submit = words`--dataset ${dataset} --agent golden --group-size 3 --artifacts dir:${artifacts}`;
    const runId = await farm.submit`${submit}`;
    await worker.until(/artifact budget/);
    expect(await farm.done`status`).toMatch(/artifact budget/);
    expect(await worker.stop()).toBe(0);
    await using _roomy = startCommand('swefarm-worker', ['run', ...flags], farm.env);
    const output = nextOutput();
    await farm.done`collect ${runId} --output ${output} --artifacts dir:${artifacts}`;
    expect(await lines(output)).toMatchObject(Array(3).fill({ outcome: 'judged', reward: 1 }));
  });
});

describe('the runtime', () => {
  test('an image that does not exist', async () => {
    const [row] = await readLines<object>(dataset);
    const other = [{ ...row, image: 'swefarm/no-such-image:latest' }];
    const file = await writeLines(join(scene.folder, 'unknown-image.jsonl'), other);
    const output = nextOutput();
    const { code, stderr } = await scene.swefarm`${golden(output, file)}`;
    expect(code).toBe(10);
    expect(stderr).toContain('swefarm/no-such-image');
    const [line] = await lines(output);
    expect(line).toMatchObject({ outcome: 'failed', reward: null, failure: { stage: 'image' } });
  });

  test('an engine whose socket is missing', async () => {
    const { swefarm } = openScene({
      SWEFARM_DOCKER_SOCKET: '/nowhere/docker.sock',
      SWEFARM_ENGINE_PATIENCE_SECONDS: '1',
    });
    const { code, stderr } = await swefarm`${golden(nextOutput())}`;
    expect(code).toBe(12);
    expect(stderr).toContain('/nowhere/docker.sock');
  });
});

describe('Redis', () => {
  test('is down at start', async () => {
    const redis = words`--redis-url redis://127.0.0.1:9 --redis-patience-seconds 2`;
    const { code, stderr } = await scene.swefarm`${golden(nextOutput())} ${redis}`;
    expect(code).toBe(12);
    expect(stderr).toContain('127.0.0.1:9');
  });

  test('becomes unavailable during a run and returns', async () => {
    await using redis = await startRedis();
    const script = conversation(running('sleep 4', 'true'));
    await using slow = await startScriptedPolicy({ script });
    const output = nextOutput();
    const urls = words`--policy-url ${slow.url} --redis-url ${redis.url}`;
    const farm = scene.start`${mini(output)} --group-size 3 ${urls}`;
    while (slow.stats().requests === 0) await sleep(100);
    await redis.kill();
    await sleep(3_000);
    await redis.restart();
    expect(await farm.exit, farm.stderr()).toBe(0);
    expect((await lines(output)).length).toBe(3);
  });

  test('is slow and cuts connections', async () => {
    await using redis = await startRedis();
    await using proxy = await startFaultProxy({ target: redis.port });
    const output = nextOutput();
    const url = redis.url.replace(String(redis.port), String(proxy.port));
    proxy.setLatency(20);
    const farm = scene.start`${mini(output)} --group-size 3 --policy-url ${policy.url} --redis-url ${url}`;
    for (let i = 0; i < 3; i++) {
      await sleep(1_500);
      proxy.cut();
    }
    expect(await farm.exit, farm.stderr()).toBe(0);
    expect((await lines(output)).length).toBe(3);
  });
});

test('an output that exists is not touched', async () => {
  const output = nextOutput();
  await writeFile(output, 'mine\n');
  const { code, stderr } = await scene.swefarm`${golden(output)}`;
  expect(code).toBe(2);
  expect(stderr).toContain('--resume');
  expect(await readFile(output, 'utf8')).toBe('mine\n');
});
