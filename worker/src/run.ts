/** `swefarm-worker run`: starts one worker, and stops it without losing work or leaving sandboxes on the node. */
import { preparePolicyConnections } from '@swefarm/policy';
import { diskFree, SCRATCH } from '@swefarm/sandbox';
import {
  createLog,
  describeConfig,
  errorMessage,
  escapedErrors,
  escapedExit,
  type Farm,
  type Log,
  logEscaped,
  onEscaped,
  openFarm,
  ownFolder,
  type WorkerConfig,
  whenAborted,
} from '@swefarm/shared';
import { assembleWorker } from './assemble.ts';
import { createWorkerMetrics } from './metrics/workermetrics.ts';
import { slotsOf } from './node/capacity.ts';
import { startCensus } from './node/census.ts';
import { splitGrace } from './node/drain.ts';
import { createNode, type Play } from './node/node.ts';
import { watchPressure } from './node/pressure.ts';
import { createProbes, serveMetrics } from './node/probes.ts';
import { createWorkerLiveness, type ReaperDeps, reap, startReaper } from './node/reaper.ts';
import { type ChosenRuntime, chooseRuntime, waitForRuntime } from './node/runtimes.ts';
import { runRollout } from './rollout/rollout.ts';
import { startThreads } from './threads/pool.ts';

/**
 * Runs until `stop` aborts or the worker is idle for too long, then drains. `play`: runs one rollout. Throws UnusableError when Redis or the
 * runtime is unusable.
 */
export async function runWorker(
  config: WorkerConfig,
  stop: AbortSignal,
  play: Play = { runRollout },
): Promise<void> {
  const log = createLog(config, { worker: config.worker_id, node: config.node });
  log.info({ config: describeConfig(config) }, 'starting');
  using _escaped = onEscaped(logEscaped(log));
  await ownFolder(config.scratch_dir, SCRATCH);

  await using stack = new AsyncDisposableStack();
  const node = await openNode(config, stop, play, log, stack);
  const { metrics } = node;
  // Prometheus shows no increase if a counter first appears with its first error, so the counter is exported from the start.
  for (const [kind, count] of Object.entries(escapedErrors())) metrics.escaped.inc({ kind }, count);
  using _counted = onEscaped((kind) => metrics.escaped.inc({ kind }));

  const { identity: self, farm } = node;
  const memory = { liveness: createWorkerLiveness(), unused: new Map() };
  const reaping: ReaperDeps = { ...node, self, registry: farm.registry, ...memory };
  metrics.reaped.inc(await waitForRuntime(() => reap(reaping), config, log, stop));
  const over = new AbortController();
  startReaper(reaping, (count) => metrics.reaped.inc(count), over.signal);
  startCensus(node, over.signal);

  // The server starts only here, so that an answer means that Redis and the runtime have worked.
  const probes = createProbes(node);
  const server = await serveMetrics(node, probes);
  if (server) stack.use(server);
  const slots = slotsOf(config, await diskFree(config.scratch_dir));
  const { scratch_dir: scratchDir, memory_reserve_bytes: memoryReserveBytes } = config;
  const pressure = stack.use(watchPressure({ artifacts: farm.artifacts, scratchDir, memoryReserveBytes }));
  const metricsAddress = server?.address ?? null;
  const worker = assembleWorker({ node, slots, pressure, metricsAddress, onBeat: probes.beaten });
  const { name: runtime } = node.runtime;
  log.info({ runtime, slots, redis: farm.address, metrics: server?.address }, 'ready');
  metrics.slots.set(slots);

  await whenAborted(worker.ending);
  const grace_seconds = config.drain_grace_seconds;
  log.info({ active: node.active.count, grace_seconds }, 'draining: no new rollouts');
  const grace = splitGrace(grace_seconds);
  exitInTime(grace.wholeMs, log);
  await worker.drain(grace);
  over.abort();
  await node.removals.finished();
  // Removes sandboxes whose earlier removal failed, because perhaps no other worker starts on this node.
  await reap({ ...reaping, ending: true }).catch((error: unknown) =>
    log.warn({ err: errorMessage(error) }, 'last sweep for left sandboxes failed'),
  );
  log.info('stopped');
}

/** `stack` ends the removals of containers before it closes the runtime. */
async function openNode(
  config: WorkerConfig,
  stop: AbortSignal,
  play: Play,
  log: Log,
  stack: AsyncDisposableStack,
) {
  const { farm, chosen } = await openFarmAndRuntime(config, stop, log, stack);
  const { runtime, check } = chosen;
  for (const warning of farm.warnings) log.warn(warning);
  for (const problem of check.problems) log.warn({ runtime: runtime.name }, problem);
  const threads = stack.use(startThreads(config.threads));
  const metrics = createWorkerMetrics();
  const node = createNode({ config, farm, runtime, threads, ...play, metrics, stop, log });
  stack.defer(() => node.removals.finished());
  stack.use(node.policies);
  stack.use(node.admission);
  return node;
}

/** Opens farm and runtime in parallel; a failure of one ends the wait for the other. */
async function openFarmAndRuntime(
  config: WorkerConfig,
  stop: AbortSignal,
  log: Log,
  stack: AsyncDisposableStack,
): Promise<{ farm: Farm; chosen: ChosenRuntime }> {
  const failed = new AbortController();
  const signal = AbortSignal.any([stop, failed.signal]);
  const opening = openFarm(config, 'worker', { log, signal });
  const choosing = waitForRuntime(() => chooseRuntime(config, log, signal), config, log, signal);
  for (const one of [opening, choosing]) one.catch((error: unknown) => failed.abort(error));
  // The HTTP client for policies is loaded while the check of the runtime waits.
  opening.then(preparePolicyConnections).catch(() => undefined);
  const [farm, chosen] = await Promise.allSettled([opening, choosing]);
  if (farm.status === 'fulfilled') stack.use(farm.value);
  if (chosen.status === 'fulfilled') stack.use(chosen.value.runtime);
  if (farm.status === 'fulfilled' && chosen.status === 'fulfilled')
    return { farm: farm.value, chosen: chosen.value };
  throw failed.signal.reason;
}

/** Exits before SIGKILL, which follows the grace period. The next worker removes the sandboxes that are left. */
function exitInTime(graceMs: number, log: Log): void {
  const timer = setTimeout(() => {
    log.error('grace period is over: the next worker removes the left sandboxes');
    process.exit(escapedExit() ?? 0);
  }, graceMs);
  timer.unref();
}
