/** Starts the loops of one worker (pull, heartbeat, maintenance) together and stops them in order. */
import { allDuties } from './maintenance/duties.ts';
import { runMaintenance } from './maintenance/maintenance.ts';
import { createManualDrain, type Grace } from './node/drain.ts';
import { type HeartbeatDeps, runHeartbeat } from './node/heartbeat.ts';
import { startPull } from './pull/pull.ts';

type WorkerParts = Pick<HeartbeatDeps, 'node' | 'slots' | 'pressure' | 'metricsAddress' | 'onBeat'>;

/** Starts all loops. The worker claims jobs at once. */
export function assembleWorker(parts: WorkerParts) {
  const { node, slots } = parts;
  const { config, farm, log, metrics } = node;
  const idle = new AbortController();
  const over = new AbortController();
  const ending = AbortSignal.any([node.stop, idle.signal]);
  const manualDrain = createManualDrain(node.active, config.drain_grace_seconds * 1000, log);
  const pull = startPull(node, slots, config.redis_prefix);
  const heartbeat = runHeartbeat(
    {
      ...parts,
      manualDrain,
      stop: ending,
      onPause: (reason) => pull.setPaused(reason !== null),
      onIdle(seconds) {
        const most = config.exit_when_idle_seconds;
        if (most > 0 && seconds >= most) idle.abort();
      },
    },
    over.signal,
  );
  const maintenance = runMaintenance(node.identity.worker, allDuties(), { farm, log, metrics }, ending);
  return {
    /** Aborts when the worker must end, because it was stopped or was idle for too long. */
    ending,
    /** Stops claiming. Resolves when all loops have ended, and no rollout runs or the grace is over. */
    async drain(grace: Pick<Grace, 'finishMs' | 'handBackMs'>): Promise<void> {
      await pull.drain(grace);
      over.abort();
      await heartbeat;
      await maintenance;
      manualDrain[Symbol.dispose]();
    },
    /** Stops all loops without cleaning up, as a killed process does; later errors are ignored. */
    abandon(): void {
      over.abort();
      node.active.abortAll('superseded');
      manualDrain[Symbol.dispose]();
      for (const loop of [heartbeat, maintenance, pull.drain({ finishMs: 0, handBackMs: 9_000 })])
        loop.catch(() => undefined);
    },
  };
}
