/** Starts the loops of one worker (pull, heartbeat, maintenance) together and stops them in order. */
import { allDuties } from './maintenance/duties.ts';
import { runMaintenance } from './maintenance/maintenance.ts';
import { createManualDrain, type Grace } from './node/drain.ts';
import { runHeartbeat } from './node/heartbeat.ts';
import type { Node } from './node/node.ts';
import type { Pressure } from './node/pressure.ts';
import { startPull } from './pull/pull.ts';

type WorkerParts = {
  node: Node;
  slots: number;
  redisPrefix: string;
  pressure: Pressure;
  /** Published address of the metrics; null: the worker serves no metrics. */
  metricsAddress: string | null;
  /** Time for rollouts to finish when an operator drains this node, in milliseconds. */
  manualGraceMs: number;
  /** Seconds after which an idle worker exits; 0: never. */
  exitWhenIdleSeconds: number;
  /** Called after each heartbeat that Redis accepted. `paused` is the reason why this worker claims nothing. */
  onBeat?: (paused: string | null) => void;
};

type AssembledWorker = {
  /** Aborts when the worker must end, because it was stopped or was idle for too long. */
  ending: AbortSignal;
  /** Stops claiming. Resolves when no rollout runs and all loops have ended. */
  drain(grace: Pick<Grace, 'finishMs' | 'handBackMs'>): Promise<void>;
  /** Stops all loops without cleaning up, as a killed process does; later errors are ignored. */
  abandon(): void;
};

/** Starts all loops. The worker claims jobs at once. */
export function assembleWorker(parts: WorkerParts): AssembledWorker {
  const { node, slots, redisPrefix, pressure, metricsAddress, manualGraceMs, exitWhenIdleSeconds, onBeat } =
    parts;
  const { farm, log, metrics } = node;
  const idle = new AbortController();
  const over = new AbortController();
  const ending = AbortSignal.any([node.stop, idle.signal]);
  const manualDrain = createManualDrain(node.active, manualGraceMs, log);
  const pull = startPull(node, slots, redisPrefix);
  const heartbeat = runHeartbeat(
    {
      node,
      slots,
      metricsAddress,
      pressure,
      manualDrain,
      stop: ending,
      onBeat,
      onPause: (reason) => pull.setPaused(reason !== null),
      onIdle(seconds) {
        if (exitWhenIdleSeconds > 0 && seconds >= exitWhenIdleSeconds) idle.abort();
      },
    },
    over.signal,
  );
  const maintenance = runMaintenance(node.identity.worker, allDuties(), { farm, log, metrics }, ending);
  return {
    ending,
    async drain(grace) {
      await pull.drain(grace);
      over.abort();
      await heartbeat;
      await maintenance;
      manualDrain[Symbol.dispose]();
    },
    abandon() {
      over.abort();
      node.active.abortAll('superseded');
      manualDrain[Symbol.dispose]();
      for (const loop of [heartbeat, maintenance, pull.drain({ finishMs: 0, handBackMs: 9_000 })])
        loop.catch(() => undefined);
    },
  };
}
