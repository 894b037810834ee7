/** Tests that rollouts whose worker is killed continue on another worker from their recorded turns, each with one result. */
import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { conversation } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { openScene } from './scene.ts';
import { EXAMPLE_ID, twentyTurns, withoutInstall } from './scripts.ts';

const ROLLOUTS = 8;
const TURNS = 20;
const KILLS = 2;

test('a drain loses no token of a long answer, and a kill only the last ones', async () => {
  await using redis = await startRedis();
  const env = { SWEFARM_REDIS_URL: redis.url, SWEFARM_RUNTIME: 'rootfs', SWEFARM_DRAIN_GRACE_SECONDS: '2' };
  const scene = openScene(env);
  const thought = Array.from({ length: 60 }, (_, n) => `Step ${n} of a long thought.`).join(' ');
  // Four tokens per event make 40 tokens a second, so an answer takes ten seconds or more.
  const turns = ['ls', 'cat setup.py', 'git status --short'].map((command) => ({ command, thought }));
  const script = { ...conversation([...turns, { submit: true }]), delay: { event_ms: 100 } };
  await using policy = await startScriptedPolicy({ script });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const start = (index: number) =>
    scene.worker`--concurrency ${ROLLOUTS} --worker-id ${`l${index}-${process.pid}`}`;
  let worker = await start(0);
  const run = await scene.submit`--dataset ${await withoutInstall(built.files.default)} --agent mini
    --group-size ${ROLLOUTS} --policy-url ${policy.url} --model scripted --token-mode token-in --require-tokens
    --no-probe --no-eval`;
  for (const [at, signal] of (['SIGTERM', 'SIGKILL', 'SIGTERM', 'SIGKILL'] as const).entries()) {
    const before = policy.stats().streamed_tokens;
    while (policy.stats().streamed_tokens < before + ROLLOUTS * 350) await sleep(20);
    worker.kill(signal);
    await worker.exit;
    worker = await start(at + 1);
  }
  const { lines } = await scene.collect(run);
  expect(lines).toHaveLength(ROLLOUTS);
  for (const line of lines) expect(line).toMatchObject({ outcome: 'judged', turns: 4, failure: null });
  const delivered = lines.reduce((sum, { tokens }) => sum + tokens.completion, 0);
  const share = policy.stats().streamed_tokens / delivered;
  console.log(`tokens sampled per token delivered, two drains and two kills: ${share.toFixed(3)}`);
  expect(lines.some(({ replay }) => replay?.tokens !== undefined)).toBe(true);
  // A kill loses at most the tokens since the last record. A drain loses at most the tokens that were in transit.
  expect(share).toBeLessThan(1 + (2 * ROLLOUTS * 300 + 2 * ROLLOUTS * 20) / delivered);
  expect(await worker.stop()).toBe(0);
  await scene.expectNothingLeft();
});

test.each(['auto', 'off'] as const)(
  '8 rollouts of 20 turns under kill -9 of their workers, with --resume-turns %s',
  async (resume) => {
    await using redis = await startRedis();
    const scene = openScene({ SWEFARM_REDIS_URL: redis.url, SWEFARM_RUNTIME: 'rootfs' });
    // The first command outlasts a turn, so that some workers are killed in the middle of a command.
    const script = { ...twentyTurns('sleep 0.3; echo begun'), delay: { fixed_ms: 150 } };
    await using policy = await startScriptedPolicy({ script });
    const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
    const start = (index: number) =>
      scene.worker`--concurrency ${ROLLOUTS} --worker-id ${`k${index}-${process.pid}`}`;
    let worker = await start(0);
    const run = await scene.submit`--dataset ${await withoutInstall(built.files.default)} --agent mini
      --group-size ${ROLLOUTS} --policy-url ${policy.url} --model scripted --token-mode token-in --require-tokens
      --no-probe --resume-turns ${resume}`;
    for (let kill = 1; kill <= KILLS; kill++) {
      const before = policy.stats().answered;
      while (policy.stats().answered < before + (ROLLOUTS * TURNS) / 4) await sleep(20);
      worker.kill('SIGKILL');
      await worker.exit;
      worker = await start(kill);
    }
    const { lines } = await scene.collect(run);
    expect(lines).toHaveLength(ROLLOUTS);
    for (const line of lines) {
      const resolved = line.rollout_index % 2 === 0;
      expect(line).toMatchObject({ outcome: 'judged', resolved, turns: TURNS, reward: resolved ? 1 : 0 });
    }
    const contents = await Promise.all(
      lines.map((line) => scene.show(`${scene.folder}/${run}.jsonl#${line.rollout_id}`)),
    );
    for (const { trajectory } of contents) expect(trajectory).toMatchObject({ contiguous: true });
    const delivered = lines.reduce((sum, { tokens }) => sum + tokens.completion, 0);
    const share = policy.stats().completion_tokens / delivered;
    console.log(
      `tokens sampled per token delivered, ${KILLS} kills, --resume-turns ${resume}: ${share.toFixed(2)}`,
    );
    if (resume === 'auto') {
      expect(lines.some(({ replay }) => (replay?.turns ?? 0) > 0)).toBe(true);
      expect(lines.every(({ replay }) => !replay || replay.differed_at === null)).toBe(true);
      // Each kill loses at most the answers on their way to worker and record.
      expect(policy.stats().answered).toBeLessThanOrEqual(ROLLOUTS * (TURNS + 2 * KILLS));
    } else expect(lines.some(({ replay }) => replay)).toBe(false);
    expect(await worker.stop()).toBe(0);
    await scene.expectNothingLeft();
  },
);
