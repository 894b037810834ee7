/** Queues the missing rollouts of a run and collects the results. */
import { rolloutIds, submit, workerWarnings } from '@swefarm/runs';
import { asksPolicy, type Instance, onAbort } from '@swefarm/shared';
import type { Collected } from '@swefarm/trajectories';
import type { Progress } from '../view/progress.ts';
import { type Follow, follow, type OpenRun } from './follow.ts';
import type { Stop } from './stop.ts';
import { printStatus } from './terminal.ts';
import type { LocalWorkers } from './workers.ts';

export type Session = OpenRun & {
  instances: readonly Instance[];
  patches?: ReadonlyMap<string, readonly string[]> | undefined;
  stop: Stop;
};

/** `rollouts`: ids that the output must have at the end; other rollouts of the run are not queued. */
export type Work = Pick<Follow, 'rollouts' | 'onResult' | 'feed' | 'mark' | 'onLine' | 'words'> & {
  workers: LocalWorkers;
};

/** Time limit for a worker to remove its containers after an error. */
const REMOVAL_MS = 10_000;

/** Prints a warning for each ability that the run needs and no worker has. */
export async function warnOfWorkers(
  { farm, record, instances }: Pick<Session, 'farm' | 'record' | 'instances'>,
  workers: Pick<LocalWorkers, 'abilities'>,
): Promise<void> {
  for (const warning of await workerWarnings(instances, record, farm, workers.abilities))
    printStatus(`swefarm: ${warning}`);
}

/** Starts workers, queues the missing rollouts and collects results until all exist or a signal arrives. Throws if no worker can run. */
export async function runSession(session: Session, work: Work): Promise<Collected> {
  const { farm, output, record, instances, patches, stop } = session;
  const open = new Set([...work.rollouts].filter((id) => !output.lines.has(id)));
  if (open.size === 0 && !work.feed) return { complete: true, unreadable: [] };
  await warnOfWorkers(session, work.workers);
  const done = new Set(rolloutIds(record, instances).filter((id) => !open.has(id)));
  let progress: Progress | null = null;
  const onNote = (note: string): void =>
    progress ? progress.printLine(`swefarm: ${note}`) : printStatus(`swefarm: ${note}`);
  // Workers load their code while the rollouts are queued.
  const workers = await work.workers.start({ onNote, results: () => output.lines.size });
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
    await submit(farm, { record, instances, done, ...(patches ? { patches } : {}) }, stop.draining);
    const collected = await follow({
      ...session,
      ...work,
      words: work.words ?? {
        resolved: true,
        turns: asksPolicy(record.agent.type) || record.agent.type === 'external',
      },
      // Without local workers, a signal ends collecting at once: the other workers of the farm do not stop with this command.
      signal: workers.length > 0 ? ended.signal : stop.draining,
      onProgress: (shown) => {
        progress = shown;
      },
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
