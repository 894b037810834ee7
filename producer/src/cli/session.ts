/** Queues the missing rollouts of a run, collects the results and shows the progress. */
import { rolloutIds, type Submission, submit, workerWarnings } from '@swefarm/runs';
import {
  asksPolicy,
  type Farm,
  type Instance,
  onAbort,
  type ProducerConfig,
  type RunRecord,
  startedRollouts,
} from '@swefarm/shared';
import { type Collected, type CollectOptions, collect } from '@swefarm/trajectories';
import { type Progress, type ProgressWords, startProgress } from '../view/progress.ts';
import type { Stop } from './stop.ts';
import { printStatus } from './terminal.ts';
import type { LocalWorkers } from './workers.ts';

/** A run whose record is final and whose output is open. `rollouts`: ids that the output must have at the end. */
export type OpenRun = Omit<CollectOptions, 'runId' | 'growing' | 'patienceMs' | 'onWarning'> & {
  farm: Farm;
  config: ProducerConfig;
  record: RunRecord;
  words?: ProgressWords | undefined;
};

/** Other rollouts of the run than `rollouts` are not queued. */
export type Session = OpenRun & {
  instances: readonly Instance[];
  patches?: ReadonlyMap<string, readonly string[]> | undefined;
  known?: Submission['known'];
  workers: LocalWorkers;
  stop: Stop;
};

const REMOVAL_MS = 10_000;
const WATCH_MS = 2_000;

/** Prints a warning for each ability that the run needs and no worker has. */
export async function warnOfWorkers(
  { farm, record, instances }: Pick<Session, 'farm' | 'record' | 'instances'>,
  workers: Pick<LocalWorkers, 'abilities'>,
): Promise<void> {
  for (const warning of await workerWarnings(instances, record, farm, workers.abilities))
    printStatus(`swefarm: ${warning}`);
}

/** Starts workers, queues the missing rollouts and collects results until all exist or a signal arrives. Throws if no worker can run. */
export async function runSession(session: Session): Promise<Collected> {
  const { farm, output, record, instances, patches, known, stop } = session;
  const open = new Set([...session.rollouts].filter((id) => !output.lines.has(id)));
  const draws = record.until !== null;
  if (open.size === 0 && !session.feed && !draws) return { complete: true, unreadable: [] };
  await warnOfWorkers(session, session.workers);
  const all = draws ? [...output.lines.keys()] : rolloutIds(record, instances);
  const done = new Set(all.filter((id) => !open.has(id)));
  let progress: Progress | null = null;
  const onNote = (note: string): void =>
    progress ? progress.printLine(`swefarm: ${note}`) : printStatus(`swefarm: ${note}`);
  // Workers load their code while the rollouts are queued.
  const workers = await session.workers.start({ onNote, results: () => output.lines.size });
  stop.onForced(() => {
    for (const worker of workers) worker.kill();
  });
  // Collecting also ends when no worker can run, or when drained workers have exited.
  const ended = new AbortController();
  const drainWorkers = (limitMs?: number) => Promise.all(workers.map((worker) => worker.drain(limitMs)));
  using _drain = onAbort(stop.draining, () => void drainWorkers());
  const watch = Promise.all(workers.map((worker) => worker.ended)).then((ends) => {
    if (workers.length > 0) ended.abort();
    return ends.find((end) => end !== null) ?? null;
  });
  let broken = true;
  try {
    await submit(farm, { record, instances, done, known, ...(patches ? { patches } : {}) }, stop.draining);
    const hasTurns = asksPolicy(record.agent.type) || record.agent.type === 'external';
    const followed = {
      words: { resolved: true, turns: hasTurns },
      ...session,
      // Without local workers, a signal ends collecting at once: the other workers of the farm do not stop with this command.
      signal: workers.length > 0 ? ended.signal : stop.draining,
    };
    const collected = await follow(followed, (shown) => {
      progress = shown;
    });
    progress = null;
    if (!collected.complete && !stop.draining.aborted) {
      const reason = await watch;
      if (reason) throw reason;
    }
    broken = false;
    return collected;
  } finally {
    progress = null;
    // After an error a worker cannot commit results, so it gets time only to remove its containers.
    await drainWorkers(broken ? REMOVAL_MS : undefined);
  }
}

/** Collects the results and shows the progress; `onProgress` receives the display. Throws the errors of {@link collect}. */
export async function follow(
  run: OpenRun,
  onProgress: (progress: Progress) => void = () => undefined,
): Promise<Collected> {
  const progress = startProgress(
    run.rollouts.size || startedRollouts(run.record),
    run.output.lines.values(),
    process.stderr,
    run.words,
  );
  onProgress(progress);
  const watch = setInterval(() => void watchFarm(run, progress), WATCH_MS);
  try {
    return await collect(run.farm, {
      ...run,
      runId: run.record.run_id,
      // The farm may queue more rollouts: refills, and groups that it draws.
      growing: run.record.refills > 0 || run.record.until !== null,
      patienceMs: run.config.redis_patience_seconds * 1000,
      onLine: (line) => {
        run.onLine?.(line);
        progress.add(line);
      },
      onWarning: (text) => progress.printLine(`swefarm: ${text}`),
    });
  } finally {
    clearInterval(watch);
    progress.stop();
  }
}

async function watchFarm({ farm, record }: OpenRun, progress: Progress): Promise<void> {
  try {
    const [workers, pause] = await Promise.all([farm.registry.list(), farm.groups.paused(record.run_id)]);
    const running = workers.reduce((sum, worker) => sum + worker.active, 0);
    const paused = pause?.reason
      ? `${pause.reason}; swefarm resume ${record.run_id}`
      : workers.find((worker) => worker.paused !== null)?.paused;
    const note = workers.length === 0 ? 'no worker alive' : paused ? `paused: ${paused}` : null;
    progress.note(running, note);
  } catch {
    // collect() waits up to `patienceMs` for Redis and then throws.
    progress.note(null, 'Redis does not answer');
  }
}
