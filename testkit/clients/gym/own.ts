/**
 * The files of `swefarm rollout --output-format gym`, read by Gym's own profile, aggregation and health check.
 * `node testkit/clients/gym/own.ts --venv DIR [--runtime docker]`
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { newId } from '@swefarm/shared';
import { buildExamples } from '../../src/examples/build.ts';
import { startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { loadScript } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { gymIn, linesOf, type Row, startChecks } from './gym.ts';

const { values } = parseArgs({
  options: { venv: { type: 'string' }, runtime: { type: 'string', default: 'docker' } },
});
if (values.venv === undefined) {
  console.error('usage: own.ts --venv DIR [--runtime docker|rootfs]');
  process.exit(2);
}
const runtime = values.runtime === 'rootfs' ? 'rootfs' : 'docker';
const EXAMPLE = 'r1chardj0n3s__parse-1.20.2';
const ROOT = resolve(import.meta.dirname, '../../..');
const { check, wrong } = startChecks();
const folder = await mkdtemp(join(tmpdir(), 'swefarm-gym-'));
const startGym = gymIn(values.venv, folder);
const token = newId();
const { conversations } = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
const variants = conversations.find(({ name }) => name?.startsWith('parse'))?.variants.slice(0, 2) ?? [];

await using redis = await startRedis();
await using policy = await startScriptedPolicy({ script: { conversations: [{ variants }] } });
const built = await buildExamples({ ids: [EXAMPLE], for: runtime, out: folder });
const env = {
  SWEFARM_REDIS_URL: redis.url,
  SWEFARM_STATE_DIR: join(folder, 'state'),
  SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
  SWEFARM_GATEWAY_TOKEN: token,
};
const output = join(folder, 'own.jsonl');
const besides = (end: string): string => join(folder, `own_${end}`);
const serve = startCommand('swefarm', ['serve', '--port', '0', '--agent', 'noop'], env);
try {
  await serve.until(/"port":\d+/);
  const { port } = JSON.parse(serve.stdout().split('\n')[0] ?? '{}') as { port: number };
  await collectOwn();
  await readByGym([`++head_server.host=farm:${token}@127.0.0.1`, `++head_server.port=${port}`]);
} finally {
  serve.kill('SIGTERM');
  await serve.exit;
  await rm(folder, { recursive: true, force: true });
}
console.log(wrong.length === 0 ? 'all good' : `${wrong.length} wrong`);
process.exitCode = wrong.length === 0 ? 0 : 1;

/** Two instances that can be judged, one whose image exists nowhere; four of each. */
async function collectOwn(): Promise<void> {
  const dataset = join(folder, 'in.jsonl');
  const [example] = built.rows;
  const none = { ...example, instance_id: 'no__image-1', image: 'dir:/there/is/no/such/image' };
  const rows = [example, { ...example, instance_id: `${EXAMPLE}-again` }, none];
  await writeFile(dataset, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const rollout = startCommand(
    'swefarm',
    [
      ...['rollout', '--dataset', dataset, '--output', output, '--output-format', 'gym', '--group-size', '4'],
      ...['--policy-url', policy.url, '--model', 'scripted', '--token-mode', 'echo', '--require-tokens'],
      ...['--runtime', runtime, '--concurrency', '4'],
    ],
    env,
  );
  check('exit code of the rollout', await rollout.exit, 10);
  check('rows', (await linesOf(output)).length, 8);
  check('rows that could not be judged', (await linesOf(besides('failures.jsonl'))).length, 4);
}

async function readByGym(head: readonly string[]): Promise<void> {
  const before = await metricsOf(besides('aggregate_metrics.json'));
  const ours = before[0]?.key_metrics ?? {};
  console.log(`ours: ${JSON.stringify(ours)}`);
  const inputs = besides('materialized_inputs.jsonl');
  const profile = ['eval', 'profile', '--inputs', inputs, '--rollouts', output];
  check('rc of the profile', await startGym([...profile, '++allow_partial_rollouts=true']).ended, 0);
  const profiled = await linesOf(besides('reward_profiling.jsonl'));
  check('groups profiled', profiled.length, 2);
  const average = profiled.reduce((sum, group) => sum + Number(group['mean/reward']), 0) / profiled.length;
  check('mean reward as profiled', average, ours['mean/reward']);

  const merged = join(folder, 'merged.jsonl');
  const aggregate = ['eval', 'aggregate', '--input-glob', output, '--output', merged];
  check('rc of the aggregation', await startGym([...aggregate, ...head]).ended, 0);
  const theirs = await metricsOf(join(folder, 'merged_aggregate_metrics.json'));
  check('key metrics as aggregated', theirs[0]?.key_metrics, ours);
  check('agent metrics as aggregated', theirs[0]?.agent_metrics, before[0]?.agent_metrics);
  const health = startGym(['eval', 'health-check', '--rollouts-file', output, '--json', folder]);
  check('rc of the health check', await health.ended, 0);
}

async function metricsOf(path: string): Promise<{ key_metrics?: Row; agent_metrics?: Row }[]> {
  return JSON.parse(await readFile(path, 'utf8')) as { key_metrics?: Row; agent_metrics?: Row }[];
}
