/**
 * Runs the farm inside a Gym that has servers of its own: `gym env start` (head server, Ray, a policy model) with the entries of
 * docs/nemo-gym.md, then the collector through that head server.
 * `node testkit/clients/gym/inside.ts --venv DIR [--runtime docker]`
 */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { freePort, sleep } from '@swefarm/shared';
import { writeLines } from '../../src/lines.ts';
import { readOptions, startFarm } from './farm.ts';
import { type Gym, linesOf, type Row } from './gym.ts';

const DOCS = resolve(import.meta.dirname, '../../../docs/nemo-gym.md');
/** Limit in ms for Gym's start with Ray and a model server, on two shared cores. */
const START_MS = 300_000;
const options = readOptions();
await using farm = await startFarm(options, {
  concurrency: 4,
  delayMs: 0,
  serve: '--gateway-failures auto',
});
const { folder, built, token, port, check, startGym } = farm;
await farm.finish(driveAll());

async function driveAll(): Promise<void> {
  const head = await freePort();
  const config = join(folder, 'farm.yaml');
  await writeFile(config, await documentedEntries());
  // Gym needs a server of its own. No request goes to this server, so the packages of the venv suffice.
  const model = join(folder, 'responses_api_models/vllm_model');
  await mkdir(model, { recursive: true });
  await symlink(options.venv, join(model, '.venv'));
  const alone = startGym(['env', 'start', '--config', config, '++head_server.host=127.0.0.1']);
  check('rc of Gym with the farm alone', (await alone.ended) === 0, false);
  check('why it refuses', /No server instances are configured/.test(alone.output()), true);
  const from = Date.now();
  const env = startGym([
    ...['env', 'start', '--config', config, '--model-type', 'vllm_model', '--model', 'scripted'],
    ...['--model-url', farm.policyUrl, '--model-api-key', 'none'],
    ...['++skip_venv_if_present=true', `++uv_venv_dir=${folder}`, '++default_host=127.0.0.1'],
    ...['++head_server.host=127.0.0.1', `++head_server.port=${head}`],
  ]);
  await ready(env, head);
  console.log(`Gym is up after ${Math.round((Date.now() - from) / 1000)} s`);
  const servers = (await (await fetch(`http://127.0.0.1:${head}/server_instances`)).json()) as {
    process_name: string;
  }[];
  check(
    'what Gym started itself',
    servers.map(({ process_name }) => process_name),
    ['policy_model'],
  );
  await collect(head, 'rows', rowsOf(2), [], 'image_not_found');
  const routed = '+environment_server_routes.swe=swe_farm_environment_server';
  await collect(head, 'episodes', rowsOf(2).map(episodeOf), [routed], 'environment_server_failed');
  env.child.kill('SIGTERM');
  await env.ended;
}

/** Returns the YAML of docs/nemo-gym.md with the address and token of this farm. */
async function documentedEntries(): Promise<string> {
  const page = await readFile(DOCS, 'utf8');
  const block = /```yaml\n(swe_farm:[\s\S]*?)```/.exec(page)?.[1] ?? '';
  const addressed = block.replaceAll('farm:TOKEN@farm-host', `farm:${token}@127.0.0.1`);
  return addressed.replaceAll('8080', String(port));
}

async function ready(env: Gym, head: number): Promise<void> {
  const until = Date.now() + START_MS;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${head}/readyz`).catch(() => null);
    if (answer?.ok) return;
    if (env.child.exitCode !== null || Date.now() > until) {
      throw new Error(`gym env start did not come up: ${env.output().slice(-2000)}`);
    }
    await sleep(500);
  }
}

/** Returns rows, of which the second one has an image that does not exist. */
function rowsOf(count: number): Row[] {
  const [example] = built.rows;
  return Array.from({ length: count }, (_, index) => ({
    responses_create_params: { input: [] },
    agent_ref: { type: 'responses_api_agents', name: 'swe_farm' },
    ...example,
    ...(index === 1 ? { image: 'dir:/there/is/no/such/image', instance_id: 'no__image-1' } : {}),
  }));
}

/** Converts a row to a materialized task, which Gym routes by its taskset and posts as an episode. */
function episodeOf(row: Row): Row {
  const { agent_ref: _agent, ...task_input } = row;
  return { task_id: { taskset: 'swe', task_id: String(row.instance_id) }, task_input };
}

/** Runs the collector, which gets the farm's address from Gym's head server. Half of the rows can be judged. */
async function collect(
  head: number,
  what: string,
  rows: readonly Row[],
  args: readonly string[],
  failureClass: string,
): Promise<void> {
  await mkdir(join(folder, what));
  const input = await writeLines(join(folder, what, 'in.jsonl'), rows);
  const output = join(folder, what, 'out.jsonl');
  const run = startGym([
    ...['eval', 'run', '--no-serve', `+input_jsonl_fpath=${input}`, `+output_jsonl_fpath=${output}`],
    ...['+num_repeats=2', '+num_samples_in_parallel=4', ...args],
    ...['++head_server.host=127.0.0.1', `++head_server.port=${head}`],
  ]);
  check(`rc of the collector of ${what} through the head server of Gym`, await run.ended, 0);
  const rewards = (await linesOf(output)).map(({ reward }) => reward).toSorted();
  check(`${what}: rewards`, rewards, [0, 1]);
  const failures = await linesOf(output.replace('.jsonl', '_failures.jsonl'));
  check(
    `${what}: failures`,
    failures.map((row) => [row._ng_failure_class, row._ng_failure_terminal]),
    [failureClass, failureClass].map((name) => [name, true]),
  );
}
