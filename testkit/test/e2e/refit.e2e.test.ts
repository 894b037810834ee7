/** A weight update in the middle of a step, on the whole farm: the servers go away and come back, and nobody is the worse for it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runCommand, startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { writeRow } from './hostrow.ts';

const ROLLOUTS = 4;
const TURNS = 25;

test('rollouts wait for new weights without patience, and go on where they were', async () => {
  const folder = temporaryFolder('refit');
  const dataset = await writeRow(folder);
  await using redis = await startRedis();
  await using policy = await startScriptedPolicy({
    script: {
      conversations: [
        { variants: [[{ think: 'Well.', command: 'pwd', repeat: TURNS - 1 }, { submit: true }]] },
      ],
    },
    template: 'strips-thinking',
    // The commands below start in seconds on a busy machine; by then the turns must not be over.
    delay: { fixed_ms: 1_200 },
  });
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_RUNTIME: 'host',
    SWEFARM_CONCURRENCY: String(ROLLOUTS),
  };
  const swefarm = async (...args: string[]): Promise<string> => {
    const ran = await runCommand('swefarm', args, env);
    expect(ran.code, ran.stderr).toBe(0);
    return ran.stdout;
  };
  const worker = startCommand('swefarm-worker', ['run'], env);
  onTestFinished(() => worker.kill('SIGKILL'));
  await worker.until(/"msg":"ready"/);

  await swefarm('policy', 'set', 'train', '--policy-version', 'step-1', '--endpoint', policy.url);
  const submitted = await swefarm(
    ...['submit', '--dataset', dataset, '--group-size', String(ROLLOUTS), '--no-eval', '--activate', 'true'],
    ...['--policy-name', 'train', '--model', 'scripted', '--token-mode', 'token-in', '--require-tokens'],
    // Nothing of the update may be paid out of these.
    ...['--patience', '0', '--request-timeout', '30'],
  );
  const { run_id } = JSON.parse(submitted) as { run_id: string };
  const answered = policy.stats().answered;
  await expect.poll(() => policy.stats().answered, { timeout: 120_000 }).toBeGreaterThan(answered + 4);

  await swefarm('policy', 'set', 'train', '--state', 'updating');
  await policy.setFault({ kind: 'refuse' });
  // Its rollouts stay bound, and the endpoint that is away is not held to be at fault.
  await expect
    .poll(async () => JSON.parse(await swefarm('policy', 'show', 'train')), {
      timeout: 60_000,
      interval: 500,
    })
    .toMatchObject([{ state: 'updating', seen: [{ url: policy.url, load: ROLLOUTS, aside_seconds: 0 }] }]);
  await policy.setFault();
  await swefarm('policy', 'set', 'train', '--policy-version', 'step-2', '--state', 'serving');

  const output = join(folder, 'out.jsonl');
  await swefarm('collect', run_id, '--output', output);
  const lines = (await readFile(output, 'utf8')).trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject(
    Array(ROLLOUTS).fill({
      outcome: 'judged',
      attempt: 1,
      turns: TURNS,
      exit_status: 'submitted',
      policy_version: 'step-2',
      failure: null,
    }),
  );
  worker.kill('SIGTERM');
  expect(await worker.exit).toBe(0);
});
