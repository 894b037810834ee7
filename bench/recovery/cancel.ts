/** Measures from the cancel mark of a run or group in Redis until nothing of its rollouts is left. */

import { readdir } from 'node:fs/promises';
import type { RuntimeName } from '@swefarm/shared';
import { engine } from '../engine.ts';
import { type Scene, type SceneWorker, timeUntil, untilHeld } from './scene.ts';

const ROLLOUTS = 4;

/** Milliseconds, one sample per cancel: the time of its last rollout. */
export type CancelTimes = { policy_request_closed: number[]; slot_free: number[]; container_gone: number[] };

export async function measureCancel(scene: Scene, runtime: RuntimeName, reps: number): Promise<CancelTimes> {
  const { farm, policy } = scene;
  const worker = await scene.worker(runtime, ROLLOUTS);
  const times: CancelTimes = { policy_request_closed: [], slot_free: [], container_gone: [] };
  for (let rep = 0; rep < reps; rep++) {
    const { run } = await scene.run(ROLLOUTS);
    await untilHeld(scene, ROLLOUTS);
    const from = performance.now();
    if (rep % 2 === 0) await farm.cancel.cancelRun(run.run_id);
    else await farm.cancel.cancelGroup(run.run_id, scene.subject.instance.instance_id);
    const [closed, free, gone] = await Promise.all([
      timeUntil(() => policy.stats().in_flight === 0, from),
      timeUntil(async () => (await farm.queue().getActiveCount()) === 0, from),
      timeUntil(async () => (await sandboxes(runtime, worker)) === 0, from),
    ]);
    times.policy_request_closed.push(closed);
    times.slot_free.push(free);
    times.container_gone.push(gone);
  }
  worker.started.kill('SIGTERM');
  await worker.started.exit;
  return times;
}

async function sandboxes(runtime: RuntimeName, { id, scratch }: SceneWorker): Promise<number> {
  if (runtime === 'docker') {
    const filters = { label: [`swefarm.worker=${id}`] };
    return (await engine().listContainers({ all: true, filters })).length;
  }
  return (await readdir(scratch)).filter((name) => name.startsWith('rootfs-')).length;
}
