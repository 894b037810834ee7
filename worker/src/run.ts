/** `swefarm-worker run`: brings one stateless worker up, and down again without losing or leaving anything. */
import {
  createLog,
  createWorkerMetrics,
  describeConfig,
  errorMessage,
  escapedErrors,
  escapedExit,
  type Log,
  logEscaped,
  onEscaped,
  openFarm,
  ownFolder,
  type WorkerConfig,
  whenAborted,
} from '@swefarm/shared';
import { openEndpoints } from './agent/policy/endpoints.ts';
import { watchPolicies } from './agent/policy/watch.ts';
import { createEvaluationLock } from './evaluation/evaluationlock.ts';
import { allDuties } from './maintenance/duties.ts';
import { runMaintenance } from './maintenance/maintenance.ts';
import { createNodeBreaker } from './node/breaker.ts';
import { slotsOf } from './node/capacity.ts';
import { startCensus } from './node/census.ts';
import { createHandDrain, splitGrace } from './node/drain.ts';
import { type Endpoint, serveMetrics } from './node/endpoint.ts';
import { beat } from './node/heartbeat.ts';
import { identify } from './node/identity.ts';
import type { Node } from './node/node.ts';
import { openPaces } from './node/paces.ts';
import { watchPressure } from './node/pressure.ts';
import { type ReaperDeps, reap, startReaper } from './node/reaper.ts';
import { createRouter, placesHere } from './node/routing.ts';
import { chooseRuntime } from './node/runtimes.ts';
import { waitForRuntime } from './node/waitforruntime.ts';
import { startPull } from './pull.ts';
import { ActiveAttempts } from './rollout/active.ts';
import { createWorkerLiveness } from './rollout/liveness.ts';
import { runRollout } from './rollout/rollout.ts';
import { trySandbox } from './rollout/trysandbox.ts';
import { diskFree } from './sandbox/free.ts';
import { createRemovals, type Removals } from './sandbox/removals.ts';
import { SCRATCH } from './sandbox/scratch.ts';
import { startThreads } from './threads/pool.ts';

/** Runs until `stop` aborts, then drains. Throws UnusableError when Redis or the runtime cannot be used at start. */
export async function runWorker(config: WorkerConfig, stop: AbortSignal): Promise<void> {
  const log = createLog(config, { worker: config.worker_id, node: config.node });
  log.info({ config: describeConfig(config) }, 'starting');
  using _escaped = onEscaped(logEscaped(log));
  await ownFolder(config.scratch_dir, SCRATCH);

  await using stack = new AsyncDisposableStack();
  const farm = stack.use(await openFarm(config, 'worker', { log, signal: stop }));
  for (const warning of farm.warnings) log.warn(warning);
  const patience = { patienceSeconds: config.engine_patience_seconds, log, signal: stop };
  const { runtime, check } = await waitForRuntime(() => chooseRuntime(config, log, stop), patience);
  stack.use(runtime);
  for (const problem of check.problems) log.warn({ runtime: runtime.name }, problem);

  const identity = identify(farm.id, config.worker_id, config.node);
  const metrics = createWorkerMetrics();
  // A counter that is not there before the first error shows no increase by it.
  for (const [kind, count] of Object.entries(escapedErrors())) metrics.escaped.inc({ kind }, count);
  using _counted = onEscaped((kind) => metrics.escaped.inc({ kind }));
  const removals = createRemovals();
  // Ends before the runtime does.
  stack.defer(() => removals.finished());
  const endpoints = openEndpoints();
  const owner = {
    farm: farm.id,
    worker: identity.worker,
    pid: identity.pid,
    pid_started: identity.pid_started,
  };
  const node: Node = {
    identity,
    owner,
    farm,
    runtime,
    rollout: runRollout,
    router: placesHere(config, runtime)
      ? createRouter(farm, identity, config.locality_wait_seconds * 1000)
      : null,
    threads: stack.use(startThreads(config.threads)),
    evaluationLock: createEvaluationLock(),
    removals,
    cleanImages: new Set(),
    paces: openPaces(),
    active: new ActiveAttempts(),
    breaker: createNodeBreaker(log, (last) => trySandbox({ runtime, owner }, last, stop)),
    stop,
    endpoints,
    policies: stack.use(watchPolicies({ farm, worker: identity.worker, endpoints, log })),
    policyPauseLimitMs: config.policy_pause_limit_seconds * 1000,
    metrics,
    ceilings: config,
    hostRewards: config.host_rewards,
    liveTurns: config.live_turns,
    log,
  };
  const unseen = createWorkerLiveness();
  const reaping = {
    ...{ runtime, self: identity, registry: farm.registry, unseen, active: node.active, log },
    unused: new Map(),
  };
  metrics.reaped.inc(await waitForRuntime(() => reap(reaping), patience));
  const until = new AbortController();
  const idle = new AbortController();
  startReaper(reaping, (count) => metrics.reaped.inc(count), until.signal);
  startCensus(node, until.signal);

  const endpoint: Endpoint | null =
    config.metrics_port === 0
      ? null
      : stack.use(
          await serveMetrics(metrics.registry, {
            host: config.metrics_host,
            port: config.metrics_port === 'auto' ? 0 : config.metrics_port,
            shownHost: config.metrics_address,
            healthy: () => !stop.aborted,
          }),
        );
  const slots = slotsOf(config, await diskFree(config.scratch_dir));
  const pressure = stack.use(
    watchPressure({
      artifacts: farm.artifacts,
      scratchDir: config.scratch_dir,
      memoryReserveBytes: config.memory_reserve_bytes,
    }),
  );
  const grace = splitGrace(config.drain_grace_seconds);
  const byHand = stack.use(createHandDrain(node.active, config.drain_grace_seconds * 1000, log));
  const pull = startPull(node, slots, config.redis_prefix);
  const heart = beat(
    {
      node,
      slots,
      metricsAddress: endpoint?.address ?? null,
      pressure,
      byHand,
      stop: AbortSignal.any([stop, idle.signal]),
      onPause: (reason) => pull.setPaused(reason !== null),
      onIdle: (seconds) => {
        if (config.exit_when_idle_seconds > 0 && seconds >= config.exit_when_idle_seconds) idle.abort();
      },
    },
    until.signal,
  );
  const keeping = runMaintenance(
    identity.worker,
    allDuties(),
    { farm, log, metrics },
    AbortSignal.any([stop, idle.signal]),
  );
  log.info(
    {
      runtime: runtime.name,
      slots,
      redis: farm.address,
      metrics: endpoint?.address,
    },
    'ready',
  );

  metrics.slots.set(slots);
  await whenAborted(AbortSignal.any([stop, idle.signal]));
  log.info(
    { active: node.active.count, grace_seconds: config.drain_grace_seconds },
    'draining: no new rollouts',
  );
  exitInTime(grace.wholeMs, log);
  await pull.drain(grace);
  until.abort();
  await heart;
  await keeping;
  await removeLeft(removals, reaping);
  log.info('stopped');
}

/** What an engine that was away did not remove; nobody comes after us on this node, perhaps. */
async function removeLeft(removals: Removals, reaping: ReaperDeps): Promise<void> {
  await removals.finished();
  await reap({ ...reaping, ending: true }).catch((error: unknown) =>
    reaping.log.warn({ err: errorMessage(error) }, 'the last sweep for left sandboxes failed'),
  );
}

/** What comes after the grace period is SIGKILL: what is not removed by then is the next worker's to reap. */
function exitInTime(graceMs: number, log: Log): void {
  const timer = setTimeout(() => {
    log.error('the grace period is over; what is left is removed by the next worker');
    process.exit(escapedExit() ?? 0);
  }, graceMs);
  timer.unref();
}
