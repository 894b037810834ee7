/** Everything that may be wrong around a rollout: a clear word, a fitting exit code, nothing lost, no reward made up. */

import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '@swefarm/shared';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startFaultProxy } from '../../src/faultproxy.ts';
import { runCommand, startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import type { FaultRuleInput } from '../../src/policy/faults.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { EXAMPLE_ID } from './scripts.ts';

const run = promisify(execFile);
let folder = '';
let dataset = '';
let policy: Awaited<ReturnType<typeof startScriptedPolicy>>;
const env = (): Record<string, string> => ({
  SWEFARM_STATE_DIR: join(folder, 'state'),
  SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
});
const SCRIPT = {
  model: 'scripted',
  conversations: [{ variants: [[{ command: 'echo hi' }, { submit: true as const }]] }],
};
let outputs = 0;
const nextOutput = (): string => join(folder, `out-${++outputs}.jsonl`);

type Line = {
  outcome: string;
  reward: number | null;
  resolved: boolean | null;
  failure: { stage: string; class: string; message: string } | null;
};
async function lines(path: string): Promise<Line[]> {
  return (await readFile(path, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

const goldenFlags = (output: string, rows = dataset): string[] => [
  'rollout',
  // The faults come while rollouts run: what a check before the run says of them has its own tests.
  '--no-probe',
  '--dataset',
  rows,
  '--agent',
  'golden',
  '--runtime',
  'docker',
  '--output',
  output,
];

const miniFlags = (output: string): string[] => [
  'rollout',
  '--dataset',
  dataset,
  '--agent',
  'mini',
  '--runtime',
  'docker',
  '--concurrency',
  '1',
  '--output',
  output,
  '--model',
  'scripted',
  '--patience',
  '1',
  '--request-timeout',
  '3',
  '--step-limit',
  '3',
  '--no-eval',
];

beforeAll(async () => {
  folder = temporaryFolder('bad');
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'docker', out: folder });
  dataset = built.files.default;
  policy = await startScriptedPolicy({ script: SCRIPT });
});
afterAll(async () => {
  await policy[Symbol.asyncDispose]();
});

// Failures are tried again with pauses that grow: side by side these wait together.
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
    const { code } = await runCommand('swefarm', [...miniFlags(output), '--policy-url', broken.url], env());
    expect(code).toBe(10);
    expect(await lines(output)).toMatchObject([
      { outcome: 'failed', reward: null, resolved: null, failure: { stage: 'policy', class: expected } },
    ]);
  });

  test('refuses connections', async () => {
    const output = nextOutput();
    const { code, stderr } = await runCommand(
      'swefarm',
      [...miniFlags(output), '--no-probe', '--policy-url', 'http://127.0.0.1:9/v1'],
      env(),
    );
    expect(code).toBe(10);
    expect(stderr).toContain('policy_unreachable');
    expect(await lines(output)).toMatchObject([
      { outcome: 'failed', reward: null, failure: { class: 'policy_unreachable' } },
    ]);
  });
});

describe.concurrent('the artifact store', () => {
  test('its disk is full', async () => {
    const small = join(folder, 'small');
    await mkdir(small);
    await run('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', small]);
    try {
      await writeFile(join(small, 'filler'), Buffer.alloc(8192)).catch(() => undefined);
      const output = nextOutput();
      const flags = goldenFlags(output);
      const { code, stderr } = await runCommand('swefarm', [...flags, '--artifacts', `dir:${small}`], env());
      expect(code, stderr).toBe(10);
      expect(await lines(output)).toMatchObject([
        { outcome: 'failed', reward: null, failure: { stage: 'worker', class: 'artifact_store' } },
      ]);
      expect(stderr).toMatch(/no space|disk|ENOSPC/i);
    } finally {
      await run('umount', ['-l', small]);
    }
  });

  test('its budget is reached: workers stop claiming and say so, and go on when there is room', async () => {
    const output = nextOutput();
    const artifacts = join(folder, 'budget');
    await mkdir(artifacts);
    await using redis = await startRedis();
    const worker = startCommand(
      'swefarm-worker',
      [
        'run',
        '--runtime',
        'docker',
        '--concurrency',
        '1',
        '--artifacts',
        `dir:${artifacts}`,
        '--artifact-budget-bytes',
        '1',
      ],
      { ...env(), SWEFARM_REDIS_URL: redis.url },
    );
    await worker.until(/"msg":"ready"/);
    const farm = { ...env(), SWEFARM_REDIS_URL: redis.url };
    const submit = [
      'submit',
      '--dataset',
      dataset,
      '--agent',
      'golden',
      '--group-size',
      '3',
      '--artifacts',
      `dir:${artifacts}`,
    ];
    const submitted = await runCommand('swefarm', submit, farm);
    await worker.until(/artifact budget/);
    expect((await runCommand('swefarm', ['status'], farm)).stdout).toMatch(/artifact budget/);
    worker.kill('SIGTERM');
    expect(await worker.exit).toBe(0);
    const roomy = startCommand(
      'swefarm-worker',
      ['run', '--runtime', 'docker', '--artifacts', `dir:${artifacts}`],
      farm,
    );
    const { run_id } = JSON.parse(submitted.stdout);
    const collected = await runCommand(
      'swefarm',
      ['collect', run_id, '--output', output, '--artifacts', `dir:${artifacts}`],
      farm,
    );
    expect(collected.code, collected.stderr).toBe(0);
    expect(await lines(output)).toMatchObject(Array(3).fill({ outcome: 'judged', reward: 1 }));
    roomy.kill('SIGTERM');
    await roomy.exit;
  });
});

describe('the runtime', () => {
  test('an image that nobody has', async () => {
    const row = {
      ...JSON.parse((await readFile(dataset, 'utf8')).split('\n')[0] ?? ''),
      image: 'swefarm/no-such-image:latest',
    };
    const file = join(folder, 'unknown-image.jsonl');
    await writeFile(file, `${JSON.stringify(row)}\n`);
    const output = nextOutput();
    const flags = goldenFlags(output, file);
    const { code, stderr } = await runCommand('swefarm', flags, env());
    expect(code).toBe(10);
    expect(stderr).toContain('swefarm/no-such-image');
    const [line] = await lines(output);
    expect(line).toMatchObject({ outcome: 'failed', reward: null, failure: { stage: 'image' } });
  });

  test('an engine whose socket is missing', async () => {
    const flags = goldenFlags(nextOutput());
    const { code, stderr } = await runCommand('swefarm', flags, {
      ...env(),
      SWEFARM_DOCKER_SOCKET: '/nowhere/docker.sock',
      SWEFARM_ENGINE_PATIENCE_SECONDS: '1',
    });
    expect(code).toBe(12);
    expect(stderr).toContain('/nowhere/docker.sock');
  });
});

describe('Redis', () => {
  test('is down at start', async () => {
    const flags = goldenFlags(nextOutput());
    const { code, stderr } = await runCommand(
      'swefarm',
      [...flags, '--redis-url', 'redis://127.0.0.1:9', '--redis-patience-seconds', '2'],
      env(),
    );
    expect(code).toBe(12);
    expect(stderr).toContain('127.0.0.1:9');
  });

  test('goes away in the middle and comes back', async () => {
    await using redis = await startRedis();
    await using slow = await startScriptedPolicy({
      script: {
        conversations: [{ variants: [[{ command: 'sleep 4' }, { command: 'true' }, { submit: true }]] }],
      },
    });
    const output = nextOutput();
    const flags = [
      ...miniFlags(output),
      '--group-size',
      '3',
      '--policy-url',
      slow.url,
      '--redis-url',
      redis.url,
    ];
    const farm = startCommand('swefarm', flags, env());
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
    const farm = startCommand(
      'swefarm',
      [...miniFlags(output), '--group-size', '3', '--policy-url', policy.url, '--redis-url', url],
      env(),
    );
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
  const { code, stderr } = await runCommand('swefarm', goldenFlags(output), env());
  expect(code).toBe(2);
  expect(stderr).toContain('--resume');
  expect(await readFile(output, 'utf8')).toBe('mine\n');
});
