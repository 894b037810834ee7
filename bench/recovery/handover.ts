/** Measures how soon rollouts of a drained or killed worker are claimed by another one and ask the policy again. */
import type { Farm } from '@swefarm/shared';
import { type Scene, timeUntil, untilHeld } from './scene.ts';

const ROLLOUTS = 4;
/** The grace period; in its first fifth rollouts may end by themselves (worker/src/node/drain.ts). */
const GRACE_SECONDS = 5;

/** Milliseconds. */
export type HandoverTimes = {
  /** One sample per rollout: drained, from the end in the journal to the next claim; killed, from the signal. */
  claimed_elsewhere: number[];
  /** One sample per worker, from the signal until all its rollouts wait for the policy again, on another worker. */
  all_running_elsewhere: number[];
  /** From the signal. */
  exit: number[];
};

/** The worker that takes over in one repetition is the one that is stopped in the next. */
export async function measureHandover(
  scene: Scene,
  signal: 'SIGTERM' | 'SIGKILL',
  reps: number,
): Promise<HandoverTimes> {
  const { farm, policy } = scene;
  const times: HandoverTimes = { claimed_elsewhere: [], all_running_elsewhere: [], exit: [] };
  const start = () => scene.worker('rootfs', ROLLOUTS, ['--drain-grace-seconds', String(GRACE_SECONDS)]);
  let holder = await start();
  for (let rep = 0; rep < reps; rep++) {
    const { run, ids } = await scene.run(ROLLOUTS);
    await untilHeld(scene, ROLLOUTS);
    const next = await start();
    const [at, from] = [Date.now(), performance.now()];
    holder.started.kill(signal);
    const exited = holder.started.exit.then(() => performance.now() - from);
    await timeUntil(async () => (await claims(farm, ids)).every((claim) => claim.length === 2), from);
    times.all_running_elsewhere.push(await timeUntil(() => policy.stats().in_flight === ROLLOUTS, from));
    times.exit.push(await exited);
    for (const [first, second] of await claims(farm, ids))
      times.claimed_elsewhere.push((second?.claimed_at ?? Number.NaN) - (first?.ended_at ?? at));
    await farm.cancel.cancelRun(run.run_id);
    await timeUntil(
      async () => policy.stats().in_flight === 0 && (await farm.queue().getActiveCount()) === 0,
    );
    holder = next;
  }
  holder.started.kill('SIGTERM');
  await holder.started.exit;
  return times;
}

const claims = (farm: Farm, ids: readonly string[]) => Promise.all(ids.map((id) => farm.journal.read(id)));
