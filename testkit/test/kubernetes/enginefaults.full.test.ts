/** Runs the 64 rollouts and faults of faults.full.test.ts on the engine of the nodes, which outlives the workers. */

import { beforeEach, expect, test } from 'vitest';
import { NO_TOOLS } from '../../helm/render.ts';
import { importTree } from '../../src/images/import.ts';
import { prepareSubject } from '../../src/images/subject.ts';
import { ensureDocker } from '../../src/launchers/docker.ts';
import { until } from '../../src/until.ts';
import { startPolicy } from './caller.ts';
import { openCluster, programs, sh, untilWorkers, workerPods } from './cluster.ts';
import { expectNoMore, survive } from './faults.ts';
import { installChart } from './suite.ts';

beforeEach(({ skip }) => skip(programs === null, NO_TOOLS));

/** Returns the rollout ids of the run's containers on the engine. */
async function sandboxesOf(run: string): Promise<string[]> {
  const format = '{{.Label "swefarm.rollout"}}';
  const all = await sh('docker', 'ps', '-a', '--filter', 'label=swefarm.rollout', '--format', format);
  return all.split('\n').filter((id) => id.startsWith(run));
}

test('64 rollouts under faults of the nodes’ engine: one result each, and no sandbox is left', async () => {
  const { socketPath } = await ensureDocker();
  const { tree, image } = await prepareSubject();
  await importTree(socketPath, tree, image);
  await using cluster = await openCluster(2);
  await using policy = await startPolicy(8);
  const mode = ['runtime.mode=node', `runtime.node.socket=${socketPath}`, 'worker.archives=null'];
  const values = await cluster.values('farm', ...mode);
  await installChart(cluster, 'farm', values);
  await untilWorkers(cluster, 2);
  const run = await survive(cluster, policy, values, image);
  // Workers detect a dead worker in another pod only by Redis, after two minutes, and then remove its sandboxes at the next sweep.
  await until(async () => (await sandboxesOf(run)).length === 0, {
    what: 'no sandbox is left',
    withinMs: 360_000,
    pauseMs: 500,
  });
  expect(await workerPods(cluster)).not.toEqual([]);
  await expectNoMore(cluster, run);
});
