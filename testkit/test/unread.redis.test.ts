/** Tests that a run whose tool calls cannot be parsed pauses itself and names the marker of the calls. */

import { loadConfig, openFarm } from '@swefarm/shared';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../src/launchers/redis.ts';
import { conversation } from '../src/policy/script.ts';
import { startScriptedPolicy } from '../src/policy/server.ts';
import { writeRow } from './e2e/hostrow.ts';
import { openScene } from './e2e/scene.ts';

const POLL = { timeout: 120_000, interval: 200 };
/** A tool call that an endpoint with the wrong parser leaves in the text. */
const CALL =
  '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command":"ls"}<|tool_call_end|>';

test('a run pauses itself when the calls of nearly all answers cannot be read', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const policy = await startScriptedPolicy({ script: conversation([{ text: CALL, repeat: 3 }]) });
  onTestFinished(() => policy[Symbol.asyncDispose]());
  const scene = openScene({ SWEFARM_REDIS_URL: redis.url, SWEFARM_RUNTIME: 'host' });
  const farm = await openFarm(
    loadConfig('producer', { env: {}, flags: { redisUrl: redis.url } }),
    'producer',
  );
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const runId = await scene.submit`--dataset ${await writeRow(scene.folder)} --group-size 500 --no-eval
    --activate true --action tool --model m --policy-url ${policy.url}`;
  const worker = await scene.worker``;
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
