/** The heartbeat: renews this worker's record once a second, applies cancels and drains, and pauses claims when the node is overloaded. */
import { bundleLabels } from '@swefarm/agents';
import { errorMessage, sleepAtMost, softwareVersion, UNDERSTOOD, type WorkerRecord } from '@swefarm/shared';
import type { ManualDrain } from './drain.ts';
import type { Node } from './node.ts';
import type { Pressure } from './pressure.ts';

const BEAT_MS = 1_000;
const SLOW_BEATS = 5;
/** The folder of agents may be on a slow file system, and bundles change seldom. */
const BUNDLE_BEATS = 60;

export type HeartbeatDeps = {
  node: Node;
  slots: number;
  /** Published address of the metrics; null: the worker serves no metrics. */
  metricsAddress: string | null;
  pressure: Pressure;
  manualDrain: ManualDrain;
  stop: AbortSignal;
  /** Called when the worker stops or begins to claim; `reason` is null when the worker claims. */
  onPause: (reason: string | null) => Promise<void>;
  /** Called with the seconds since a rollout last ran on this worker; 0 while one runs. */
  onIdle: (seconds: number) => void;
  /** Called after each heartbeat that Redis accepted; `paused` is the reason why this worker claims nothing. */
  onBeat?: ((paused: string | null) => void) | undefined;
};

/** Sends heartbeats until the signal aborts, then removes this worker from the registry. An outage of Redis is logged once. */
export async function runHeartbeat(deps: HeartbeatDeps, signal: AbortSignal): Promise<void> {
  const { node } = deps;
  const started = node.farm.clock.now();
  let epoch = -1;
  let paused: string | null = null;
  let away = false;
  let busyAt = performance.now();
  let bundles: string[] | null = null;
  const readBundles = async () => {
    bundles = await bundleLabels(node.config.agents_dir).catch(() => null);
  };
  for (let tick = 0; !signal.aborted; tick++) {
    if (node.active.count > 0) busyAt = performance.now();
    deps.onIdle((performance.now() - busyAt) / 1000);
    node.metrics.activeRollouts.set(node.active.count);
    // Not awaited: a file system that does not answer must not stop the heartbeat.
    if (tick % BUNDLE_BEATS === 0) void readBundles();
    try {
      if (tick % SLOW_BEATS === 0) {
        void node.breaker.recheck();
        paused = await updatePause(deps, paused);
        await node.router?.reconcileSeats(node.active.ids());
      }
      const record = recordOf(deps, { started_at: started, paused, bundles });
      const reply = await node.farm.registry.beat(record);
      deps.onBeat?.(record.paused);
      if (reply.drained !== (deps.manualDrain.reason() !== null)) {
        deps.manualDrain.set(reply.drained);
        paused = await updatePause(deps, paused);
      }
      if (reply.cancel_epoch !== epoch) await abortCancelled(node);
      epoch = reply.cancel_epoch;
      if (away) node.log.info('Redis answers again');
      away = false;
    } catch (error) {
      if (!away) node.log.warn({ err: errorMessage(error) }, 'heartbeat failed: running rollouts continue');
      away = true;
      node.metrics.beatsMissed.inc();
    }
    await sleepAtMost(BEAT_MS, signal);
  }
  await node.farm.registry.leave(node.identity.worker).catch((error: unknown) => {
    node.log.warn({ err: errorMessage(error) }, 'worker not removed from the registry: its record expires');
  });
}

function recordOf(
  deps: HeartbeatDeps,
  { started_at, paused, bundles }: Pick<WorkerRecord, 'started_at' | 'paused'> & { bundles: string[] | null },
): WorkerRecord {
  const { node, slots } = deps;
  return {
    worker: node.identity.worker,
    node: node.identity.node,
    runtime: node.runtime.name,
    slots,
    active: node.active.count,
    started_at,
    metrics: deps.metricsAddress,
    paused: deps.stop.aborted ? 'draining' : paused,
    placed: node.router !== null,
    parser_image: node.config.parser_image !== null,
    ...(bundles ? { bundles } : {}),
    software_version: softwareVersion(),
    understands: UNDERSTOOD,
  };
}

async function updatePause(deps: HeartbeatDeps, before: string | null): Promise<string | null> {
  const { node, pressure, manualDrain } = deps;
  const measured = await pressure.reason();
  const reason = manualDrain.reason() ?? node.breaker.reason() ?? measured;
  node.metrics.loopLagSeconds.set(pressure.lagSeconds());
  node.metrics.unhealthy.set(node.breaker.reason() === null ? 0 : 1);
  node.metrics.paused.set(reason === null ? 0 : 1);
  const { freeBytes, sizeBytes } = pressure.disk();
  node.metrics.diskFree.set(freeBytes);
  node.metrics.diskSize.set(sizeBytes);
  if ((reason === null) !== (before === null)) {
    if (reason) node.log.warn({ reason }, 'claiming nothing more for now');
    else node.log.info('claiming again');
    await deps.onPause(reason);
  }
  return reason;
}

async function abortCancelled(node: Node): Promise<void> {
  const running = node.active.list().map(({ rollout_id }) => rollout_id);
  if (running.length === 0) return;
  for (const [id, reason] of await node.farm.cancel.isCancelled(running))
    node.active.abort(id, 'cancelled', reason);
}
