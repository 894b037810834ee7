/** Receives jobs that other workers forward to this worker with their locks. BullMQ does not count these jobs. */
import { errorMessage, type Handed, sleepAtMost } from '@swefarm/shared';
import type { Node } from '../node/node.ts';
import type { Queue } from './queue.ts';
import { type JobDeps, runForwarded } from './runjob.ts';

const REDIS_AWAY_MS = 1_000;

type ForwardedJobs = {
  count(): number;
  /** Stops receiving jobs and waits for running ones. */
  end(): Promise<void>;
};

/** Starts to receive at once if this worker has a router. Calls `onChange` whenever the number of running jobs has changed. */
export function receiveForwarded(deps: JobDeps, queue: Queue, onChange: () => void): ForwardedJobs {
  const { node } = deps;
  const running = new Set<Promise<void>>();
  const over = new AbortController();
  const start = (handed: Handed): void => {
    const run: Promise<void> = runHanded(handed, queue, deps)
      .catch((error: unknown) =>
        node.log.warn({ job: handed.job, err: errorMessage(error) }, 'forwarded job failed'),
      )
      .finally(() => {
        running.delete(run);
        onChange();
      });
    running.add(run);
    onChange();
  };
  const receiving = node.router ? receive(node, start, over.signal) : Promise.resolve();
  return {
    count: () => running.size,
    async end() {
      over.abort();
      // The call is not awaited, because Redis may be unavailable; without the call, the wait for a job ends within a second.
      if (node.router) node.farm.placement.wake(node.identity.worker).catch(() => undefined);
      await receiving;
      await Promise.all(running);
    },
  };
}

async function receive(node: Node, start: (handed: Handed) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const handed = await node.farm.placement.receive(node.identity.worker);
      if (handed) start(handed);
    } catch (error) {
      if (signal.aborted) return;
      node.log.debug({ err: errorMessage(error) }, 'receiving forwarded jobs failed');
      await sleepAtMost(REDIS_AWAY_MS, signal);
    }
  }
}

async function runHanded({ job: id, token }: Handed, queue: Queue, deps: JobDeps): Promise<void> {
  const job = await queue.find(id);
  if (job && (await queue.renewLock(job, token))) return runForwarded(job, token, deps);
  // The lock expired before the job arrived, and another worker has the job.
  await deps.node.router?.leave(id);
}
