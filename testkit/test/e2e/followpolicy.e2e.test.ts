/** Tests the validation of a policy while it is trained: each nth version gets one run, also after a restart of the command. */
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../src/launchers/redis.ts';
import { conversation } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { writeRow } from './hostrow.ts';
import { openScene, type Scene } from './scene.ts';

const POLL = { timeout: 120_000, interval: 500 };

async function begin() {
  const redis = await startRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const script = conversation([{ command: 'pwd' }, { submit: true }]);
  const policy = await startScriptedPolicy({ script });
  onTestFinished(() => policy[Symbol.asyncDispose]());
  const scene = openScene({ SWEFARM_REDIS_URL: redis.url, SWEFARM_RUNTIME: 'host' });
  const serve = (version: string) =>
    scene.done`policy set main --policy-version ${version} --endpoint ${policy.url} --state serving`;
  const dataset = await writeRow(scene.folder);
  const flags = [
    '--every',
    '10',
    '--dataset',
    dataset,
    '--model',
    'scripted',
    '--no-eval',
    '--activate',
    'true',
  ];
  return { scene, serve, flags };
}

const runsOf = async (scene: Scene) =>
  (JSON.parse(await scene.done`status --json`) as { runs: { kind: string; run_id: string }[] }).runs;

test('each tenth version gets one validation run, also after the command was killed', async () => {
  const { scene, serve, flags } = await begin();
  const worker = await scene.worker``;
  onTestFinished(() => worker.kill('SIGKILL'));
  await serve('step-10');
  const first = scene.start`follow-policy main ${flags}`;
  onTestFinished(() => first.kill('SIGKILL'));
  await expect.poll(() => runsOf(scene), POLL).toMatchObject([{ kind: 'validation' }]);
  await serve('step-15');
  first.kill('SIGKILL');
  await first.exit;
  await serve('step-10');
  // The version has a run, so the command waits for the next one.
  const second = scene.start`follow-policy main ${flags} --versions 1`;
  onTestFinished(() => second.kill('SIGKILL'));
  await serve('step-20');
  expect(await second.exit, second.stderr()).toBe(0);
  const runs = await runsOf(scene);
  expect(runs.map(({ kind }) => kind)).toEqual(['validation', 'validation']);
  const versions = await Promise.all(
    runs.map(async ({ run_id }) => {
      const { lines } = await scene.collect(run_id);
      return lines.map(({ policy_version }) => policy_version);
    }),
  );
  expect(versions).toContainEqual(['step-20']);
  const other = await scene.swefarm`follow-policy main ${flags} --policy-name other`;
  expect(other.code).toBe(2);
  expect(other.stderr).toContain('the runs follow policy main');
});
