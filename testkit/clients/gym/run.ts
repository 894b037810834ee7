/**
 * The unmodified collector of NeMo Gym against `swefarm serve` with a worker on real containers: 20 rows x 4, killed in
 * the middle and resumed, then Gym's own health check. `node testkit/clients/gym/run.ts --venv DIR [--runtime docker]`
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { newId, sleep } from '@swefarm/shared';
import { buildExamples } from '../../src/examples/build.ts';
import { startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { untilTerminated } from '../../src/launchers/untilterminated.ts';
import { loadScript } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { endGym, type Gym, gymIn, linesOf, type Row, startChecks } from './gym.ts';

const { values } = parseArgs({
  options: {
    venv: { type: 'string' },
    runtime: { type: 'string', default: 'docker' },
    rows: { type: 'string', default: '20' },
    repeats: { type: 'string', default: '4' },
    concurrency: { type: 'string', default: '8' },
  },
});
if (values.venv === undefined) {
  console.error(
    'usage: run.ts --venv DIR [--runtime docker|rootfs] [--rows N] [--repeats N] [--concurrency N]',
  );
  process.exit(2);
}
const runtime = values.runtime === 'rootfs' ? 'rootfs' : 'docker';
const rows = Number(values.rows);
const repeats = Number(values.repeats);
const EXAMPLE = 'r1chardj0n3s__parse-1.20.2';
const ROOT = resolve(import.meta.dirname, '../../..');
const { check, wrong } = startChecks();
const terminated = untilTerminated();

const folder = await mkdtemp(join(tmpdir(), 'swefarm-gym-'));
const gym = gymIn(values.venv, folder);
const begun: Gym[] = [];
const startGym = (args: readonly string[]): Gym => {
  const one = gym(args);
  begun.push(one);
  return one;
};
await using redis = await startRedis();
await using policy = await startScriptedPolicy({ script: script() });
const built = await buildExamples({ ids: [EXAMPLE], for: runtime, out: folder });
const token = newId();
const env = {
  SWEFARM_REDIS_URL: redis.url,
  SWEFARM_STATE_DIR: join(folder, 'state'),
  SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
  SWEFARM_GATEWAY_TOKEN: token,
};
const worker = startCommand(
  'swefarm-worker',
  ['run', '--runtime', runtime, '--concurrency', String(values.concurrency)],
  env,
);
const serve = startCommand(
  'swefarm',
  ['serve', '--port', '0', '--policy-url', policy.url, '--model', 'scripted', '--token-mode', 'echo'],
  env,
);
try {
  await Promise.race([terminated, collectAll()]);
} finally {
  for (const one of begun) endGym(one);
  serve.kill('SIGTERM');
  worker.kill('SIGTERM');
  await Promise.all([serve.exit, worker.exit]);
  await rm(folder, { recursive: true, force: true });
}
console.log(wrong.length === 0 ? 'all good' : `${wrong.length} wrong`);
process.exitCode = wrong.length === 0 ? 0 : 1;

/** Even rollouts resolve, odd ones do not; each turn takes a moment, so that there is a middle to be killed in. */
function script() {
  const { conversations } = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
  const variants = conversations.find(({ name }) => name?.startsWith('parse'))?.variants.slice(0, 2) ?? [];
  return { conversations: [{ variants }], delay: { fixed_ms: 200 } };
}

async function collectAll(): Promise<void> {
  await Promise.all([worker.until(/"msg":"ready"/), serve.until(/"port":\d+/)]);
  const { port } = JSON.parse(serve.stdout().split('\n')[0] ?? '{}') as { port: number };
  const input = join(folder, 'in.jsonl');
  const output = join(folder, 'out.jsonl');
  const [example] = built.rows;
  // Equal rows are one task to the collector. The last one's image exists nowhere: nobody can judge it.
  const all = Array.from({ length: rows }, (_, index) => ({
    responses_create_params: { input: [] },
    ...example,
    case: index,
    ...(index === rows - 1 ? { image: 'dir:/there/is/no/such/image', instance_id: 'no__image-1' } : {}),
  }));
  await writeFile(input, all.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const arguments_ = [
    'eval',
    'run',
    '--no-serve',
    '+agent_name=swe_farm',
    `+input_jsonl_fpath=${input}`,
    `+output_jsonl_fpath=${output}`,
    `+num_repeats=${repeats}`,
    '+num_samples_in_parallel=32',
    `++head_server.host=farm:${token}@127.0.0.1`,
    `++head_server.port=${port}`,
  ];
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
