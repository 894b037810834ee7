/** Tests a weight update in the middle of a step: the servers become unavailable and return, and no rollout fails. */
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../src/launchers/redis.ts';
import { conversation } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { writeRow } from './hostrow.ts';
import { openScene } from './scene.ts';

const ROLLOUTS = 4;
const TURNS = 25;

test('rollouts wait for new weights without using up patience, and continue', async () => {
  await using redis = await startRedis();
  await using policy = await startScriptedPolicy({
    script: conversation([{ think: 'Well.', command: 'pwd', repeat: TURNS - 1 }, { submit: true }]),
    template: 'strips-thinking',
    // The delay ensures that the turns last until the commands below have started on a busy machine.
    delay: { fixed_ms: 1_200 },
  });
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: 'host',
    SWEFARM_CONCURRENCY: String(ROLLOUTS),
  });
  const worker = await scene.worker``;
  onTestFinished(() => worker.kill('SIGKILL'));

  await scene.done`policy set train --policy-version step-1 --endpoint ${policy.url}`;
  // The update must use up neither the patience nor the time limit of a request.
  const run = await scene.submit`--dataset ${await writeRow(scene.folder)} --group-size ${ROLLOUTS} --no-eval
    --activate true --policy-name train --model scripted --token-mode token-in --require-tokens
    --patience 0 --request-timeout 30`;
  const answered = policy.stats().answered;
  await expect.poll(() => policy.stats().answered, { timeout: 120_000 }).toBeGreaterThan(answered + 4);

  await scene.done`policy set train --state updating`;
  await policy.setFault({ kind: 'refuse' });
  // Its rollouts remain bound, and the unavailable endpoint is not excluded.
  await expect
    .poll(async () => JSON.parse(await scene.done`policy show train`), {
      timeout: 60_000,
      interval: 500,
    })
    .toMatchObject([{ state: 'updating', seen: [{ url: policy.url, load: ROLLOUTS, aside_seconds: 0 }] }]);
  await policy.setFault();
  await scene.done`policy set train --policy-version step-2 --state serving`;

  const { code, stderr, lines } = await scene.collect(run);
  expect(code, stderr).toBe(0);
  expect(lines).toMatchObject(
    Array(ROLLOUTS).fill({
      outcome: 'judged',
      attempt: 1,
      turns: TURNS,
      exit_status: 'submitted',
      policy_version: 'step-2',
      failure: null,
    }),
  );
  expect(await worker.stop()).toBe(0);
});
