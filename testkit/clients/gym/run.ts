/**
 * Runs the unmodified collector of NeMo Gym against `swefarm serve` with a worker on real containers: 20 rows x 4, killed in
 * the middle and resumed, then Gym's own health check. `node testkit/clients/gym/run.ts --venv DIR [--runtime docker]`
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { words } from '../../src/launchers/commands.ts';
import { writeLines } from '../../src/lines.ts';
import { readOptions, startFarm } from './farm.ts';
import { endGym, linesOf, type Row } from './gym.ts';

const options = readOptions({ rows: 20, repeats: 4, concurrency: 8 });
const { rows, repeats, concurrency } = options.numbers;
// The delay leaves time to kill the collector before its end.
await using farm = await startFarm(options, { concurrency, delayMs: 200 });
const { folder, built, token, port, check, startGym } = farm;
await farm.finish(collectAll());

async function collectAll(): Promise<void> {
  const output = join(folder, 'out.jsonl');
  const [example] = built.rows;
  // `case` makes the rows distinct, because the collector treats equal rows as one task. The image of the last row does not exist.
  const all = Array.from({ length: rows }, (_, index) => ({
    responses_create_params: { input: [] },
    ...example,
    case: index,
    ...(index === rows - 1 ? { image: 'dir:/there/is/no/such/image', instance_id: 'no__image-1' } : {}),
  }));
  const input = await writeLines(join(folder, 'in.jsonl'), all);
  const arguments_ = words`eval run --no-serve +agent_name=swe_farm
    +input_jsonl_fpath=${input} +output_jsonl_fpath=${output}
    +num_repeats=${repeats} +num_samples_in_parallel=32
    ++head_server.host=farm:${token}@127.0.0.1 ++head_server.port=${port}`;
  const from = Date.now();
  const first = startGym(arguments_);
  while ((await linesOf(output)).length < (rows * repeats) / 4 && first.child.exitCode === null)
    await sleep(200);
  endGym(first);
  await first.ended;
  const before = (await linesOf(output)).length;
  console.log(`killed with ${before} rows after ${Math.round((Date.now() - from) / 1000)} s`);
  const second = startGym([...arguments_, '+resume_from_cache=true']);
  check('rc of the resumed collection', await second.ended, 0);
  console.log(`whole after ${Math.round((Date.now() - from) / 1000)} s`);
  await checkFiles(output);
  const health = startGym(['eval', 'health-check', '--rollouts-file', output, '--json', folder]);
  check('rc of the health check', await health.ended, 0);
  const report = JSON.parse(/\{[\s\S]*\}/.exec(health.output())?.[0] ?? '{}') as Record<string, unknown>;
  console.log(`health: ${JSON.stringify(report).slice(0, 600)}`);
}

async function checkFiles(output: string): Promise<void> {
  const good = await linesOf(output);
  const failures = await linesOf(output.replace('.jsonl', '_failures.jsonl'));
  const key = (row: Row): string => `${row._ng_task_index}/${row._ng_rollout_index}`;
  const judged = (rows - 1) * repeats;
  check('rows', good.length, judged);
  check('rows that are one of a kind', new Set(good.map(key)).size, judged);
  check('rollouts that are one of a kind', new Set(good.map((row) => row.rollout_id)).size, judged);
  check('rewards', [...new Set(good.map((row) => row.reward))].toSorted(), [0, 1]);
  check('rows that could not be judged', new Set(failures.map(key)).size, repeats);
  check('why', [...new Set(failures.map((row) => row._ng_failure_class))], ['image_not_found']);
  check(
    'materialized inputs',
    (await linesOf(output.replace('.jsonl', '_materialized_inputs.jsonl'))).length,
    rows * repeats,
  );
  const metrics = await readFile(output.replace('.jsonl', '_aggregate_metrics.json'), 'utf8');
  const [entry] = JSON.parse(metrics) as {
    key_metrics: Record<string, number>;
    group_level_metrics: unknown[];
  }[];
  check('judged, as aggregated', entry?.key_metrics.judged, judged);
  check('groups, as aggregated', entry?.group_level_metrics.length, rows - 1);
  check('a group is a task', `pass@1[avg-of-${repeats}]` in (entry?.key_metrics ?? {}), true);
  console.log(`key metrics: ${JSON.stringify(entry?.key_metrics)}`);
}
