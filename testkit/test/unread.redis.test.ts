/** A run whose tool calls nobody reads, in real processes: the model is told why, the run pauses itself and names how the calls begin. */

import { join } from 'node:path';
import { loadConfig, openFarm } from '@swefarm/shared';
import { expect, onTestFinished, test } from 'vitest';
import { runCommand, startCommand } from '../src/launchers/commands.ts';
import { startRedis } from '../src/launchers/redis.ts';
import { startScriptedPolicy } from '../src/policy/server.ts';
import { writeRow } from './e2e/hostrow.ts';
import { temporaryFolder } from './temporaryfolder.ts';

const POLL = { timeout: 120_000, interval: 200 };
/** What an endpoint with another family's parser leaves in the text. */
const CALL =
  '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command":"ls"}<|tool_call_end|>';

test('a run pauses itself when the calls of nearly all answers cannot be read', async () => {
  const folder = temporaryFolder('unread');
  // The worker is killed at the end, and what its sandboxes run ends a moment after it.

  const redis = await startRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [[{ text: CALL, repeat: 3 }]] }] },
  });
  onTestFinished(() => policy[Symbol.asyncDispose]());
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_RUNTIME: 'host',
  };
  const farm = await openFarm(
    loadConfig('producer', { env: {}, flags: { redisUrl: redis.url } }),
    'producer',
  );
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const run = ['--dataset', await writeRow(folder), '--group-size', '500', '--no-eval', '--activate', 'true'];
  const asked = ['--action', 'tool', '--model', 'm', '--policy-url', policy.url];
  const submitted = await runCommand('swefarm', ['submit', ...run, ...asked], env);
  expect(submitted.code, submitted.stderr).toBe(0);
  const { run_id: runId } = JSON.parse(submitted.stdout);
  const worker = startCommand('swefarm-worker', ['run'], env);
  onTestFinished(() => worker.kill('SIGKILL'));

  const reason = async () => (await farm.groups.paused(runId))?.reason ?? '';
  await expect
    .poll(reason, POLL)
    .toMatch(
      /^the tool calls of \d+ of \d+ answers could not be read \(<\|tool_calls_section_begin\|> \d+\): /,
    );
  expect((await farm.groups.open(runId)).length).toBeGreaterThan(0);
  const { results } = await farm.results.read(runId, '0');
  expect(results[0]?.result).toMatchObject({
    exit_status: 'format_limit',
    unread_calls: { answers: 3, marker: '<|tool_calls_section_begin|>' },
  });
});
