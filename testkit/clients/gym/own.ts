/**
 * Reads the files of `swefarm rollout --output-format gym` with Gym's own profile, aggregation and health check.
 * `node testkit/clients/gym/own.ts --venv DIR [--runtime docker]`
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startCommand, words } from '../../src/launchers/commands.ts';
import { writeLines } from '../../src/lines.ts';
import { EXAMPLE, readOptions, startFarm } from './farm.ts';
import { linesOf, type Row } from './gym.ts';

const options = readOptions();
await using farm = await startFarm(options, { delayMs: 0 });
const { folder, built, check, startGym } = farm;
const output = join(folder, 'own.jsonl');
const besides = (end: string): string => join(folder, `own_${end}`);
await farm.finish(collectOwn().then(readByGym));

/** Collects four rollouts of each of three instances; the image of the third instance does not exist. */
async function collectOwn(): Promise<void> {
  const [example] = built.rows;
  const none = { ...example, instance_id: 'no__image-1', image: 'dir:/there/is/no/such/image' };
  const rows = [example, { ...example, instance_id: `${EXAMPLE}-again` }, none];
  const dataset = await writeLines(join(folder, 'in.jsonl'), rows);
  const rollout = startCommand(
    'swefarm',
    words`rollout --dataset ${dataset} --output ${output} --output-format gym --group-size 4
      --policy-url ${farm.policyUrl} --model scripted --token-mode echo --require-tokens
      --runtime ${options.runtime} --concurrency 4`,
    farm.env,
  );
  check('exit code of the rollout', await rollout.exit, 10);
  check('rows', (await linesOf(output)).length, 8);
  check('rows that could not be judged', (await linesOf(besides('failures.jsonl'))).length, 4);
}

async function readByGym(): Promise<void> {
  const head = [`++head_server.host=farm:${farm.token}@127.0.0.1`, `++head_server.port=${farm.port}`];
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
