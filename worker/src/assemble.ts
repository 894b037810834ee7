/** The loops of one worker around its node: pull, heartbeat and maintenance, begun together and ended in their order. */
import { allDuties } from './maintenance/duties.ts';
import { runMaintenance } from './maintenance/maintenance.ts';
import { createManualDrain, type Grace } from './node/drain.ts';
import { runHeartbeat } from './node/heartbeat.ts';
import type { Node } from './node/node.ts';
import type { Pressure } from './node/pressure.ts';
import { startPull } from './pull/pull.ts';

export type WorkerParts = {
  node: Node;
  slots: number;
  redisPrefix: string;
  pressure: Pressure;
  /** Where others reach the worker's metrics; null: nowhere. */
  metricsAddress: string | null;
  /** What rollouts get to end by themselves when somebody drains this node by hand. */
  manualGraceMs: number;
  /** 0: an idle worker stays. */
  exitWhenIdleSeconds: number;
};

export type AssembledWorker = {
  /** Aborts when the worker must end: it was stopped, or was idle for long enough. */
  ending: AbortSignal;
  /** Claims nothing more; resolves when nothing runs and the loops have ended. */
  drain(grace: Pick<Grace, 'finishMs' | 'handBackMs'>): Promise<void>;
  /** Leaves everything as it is, as a killed process does; whatever still fails is ignored. */
  abandon(): void;
};

/** Begins to claim at once. */
export function assembleWorker(parts: WorkerParts): AssembledWorker {
  const { node, slots, redisPrefix, pressure, metricsAddress, manualGraceMs, exitWhenIdleSeconds } = parts;
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
