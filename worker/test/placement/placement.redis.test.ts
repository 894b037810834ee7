/** Rollouts of one image go to the nodes that have it: real queue, journal and placement, with a counting image source. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentConfig, loadConfig, newId, openFarm, type RunRecord } from '@swefarm/shared';
import { bareInstance, bareRun, until } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { redisUrl } from '../maintenance/farm.ts';
import { type SimulatedWorker, simulateWorker } from '../simulated.ts';

type Ground = Awaited<ReturnType<typeof prepare>>;

async function prepare(settings: Record<string, string> = {}) {
  const flags = { redis_url: redisUrl(), redis_prefix: `{p-${newId()}}`, ...settings };
  const config = (worker: string) =>
    loadConfig('worker', { env: {}, flags: { ...flags, worker_id: worker, node: `node-${worker}` } });
  const farm = await openFarm(config('none'), 'producer');
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const pulls: string[] = [];
  return {
    farm,
    /** `worker image`, once for each pull. */
    pulls,
    async start(names: readonly string[], slots: number, milliseconds: number): Promise<SimulatedWorker[]> {
      const workers = await Promise.all(
        names.map((name) =>
          simulateWorker(config(name), {
            slots,
            async pull(image) {
              pulls.push(`${name} ${image}`);
              await sleep(50);
            },
            work: (_, { signal }) => sleep(milliseconds, undefined, { signal }),
          }),
        ),
      );
      onTestFinished(async () => {
        await Promise.all(workers.map((worker) => worker.kill()));
      });
      await until(async () => (await farm.registry.list()).length >= names.length);
      // Longer than the age at which a worker reads its list of other workers again.
      await sleep(3_000);
      return workers;
    },
    async submit(images: number, size: number): Promise<RunRecord> {
      const dataset = { path: 'rows.jsonl', sha256: 'ab', instances: images };
      const run = bareRun({ dataset, group_size: size, agent: AgentConfig.parse({ type: 'noop' }) });
      const instances = Array.from({ length: images }, (_, at) =>
        bareInstance({ instance_id: `a__b-${at}`, image: `example:${at}` }),
      );
      await farm.runs.create(run, instances);
      await farm.jobs.enqueue(run, await farm.groups.rollouts(run.run_id));
      return run;
    },
  };
}

const committed = (ground: Ground, run: RunRecord, count: number) =>
  until(async () => (await ground.farm.results.counts(run.run_id)).committed === count);

const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `w${at}`);

test('32 x 16 rollouts on 16 empty nodes pull each image about once', async () => {
  const ground = await prepare();
  // A rollout runs for longer than a queued one waits for its node, so that the surplus of a node goes to the next.
  await ground.start(names(16), 32, 5_000);
  const run = await ground.submit(32, 16);
  await committed(ground, run, 512);
  // Each of the 32 images is pulled at least once. A node with more than two images has too few slots for their rollouts, so other nodes
  // pull an image again for the surplus.
  expect(ground.pulls.length).toBeGreaterThanOrEqual(32);
  expect(ground.pulls.length).toBeLessThanOrEqual(64);
  // Forwarding is no attempt.
  const ids = (await ground.farm.groups.rollouts(run.run_id)).slice(0, 32);
  const journals = await Promise.all(ids.map((id) => ground.farm.journal.read(id)));
  expect(journals.map(({ length }) => length)).toEqual(ids.map(() => 1));
});

test('without placement there are many more pulls', async () => {
  const ground = await prepare({ placement: 'off' });
  await ground.start(names(16), 32, 1_500);
  const run = await ground.submit(32, 16);
  await committed(ground, run, 512);
  expect(ground.pulls.length).toBeGreaterThan(128);
});

test('a killed node loses no job that was forwarded to it', async () => {
  const ground = await prepare();
  const [first] = await ground.start(names(3), 8, 2_000);
  const run = await ground.submit(6, 4);
  await until(async () => (first?.active() ?? 0) > 0);
  await first?.kill();
  await committed(ground, run, 24);
});

test('a full farm continues, and a drained node forwards its rollouts', async () => {
  const ground = await prepare({ locality_wait_seconds: '1' });
  const [, second] = await ground.start(names(3), 4, 200);
  const run = await ground.submit(3, 16);
  await until(async () => (await ground.farm.results.counts(run.run_id)).committed > 4);
  await second?.drain();
  await committed(ground, run, 48);
});
