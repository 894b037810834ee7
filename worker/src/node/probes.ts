/**
 * What probes learn from a worker over HTTP: whether it can take a rollout now (`/readyz`), and whether it is worth keeping (`/livez`).
 * Both answers come from what the heartbeat and one check of the runtime last found, so that a probe costs nothing.
 */

import type { Runtime } from '@swefarm/sandbox';
import { errorMessage, type Farm, type Log, waitAtMost } from '@swefarm/shared';

/** A heartbeat is sent once a second; the registry forgets a worker after fifteen without one. */
const BEAT_LATE_MS = 5_000;
/** A worker whose heartbeats stop for so long while Redis answers has loops that no longer run. */
const BEAT_DEAD_MS = 60_000;
const PING_MS = 2_000;
/** How old the last check of the runtime may be before a probe starts another; shorter while it failed. */
const CHECK_EVERY_MS = 30_000;
const CHECK_AGAIN_MS = 5_000;
const CHECK_MS = 30_000;

export type Probes = {
  /** Called after each heartbeat that Redis took, with the reason why this worker claims nothing; null: it claims. */
  beaten(paused: string | null): void;
  /** One line that says why this worker can take no rollout; null when it can. The log is told when the answer turns. */
  whyNotReady(): string | null;
  /** One line that says why this worker has to be started again; null when that would help nobody. */
  whyNotAlive(): Promise<string | null>;
};

export type ProbesDeps = {
  runtime: Pick<Runtime, 'name' | 'check'>;
  farm: Pick<Farm, 'ping'>;
  log: Pick<Log, 'info' | 'warn'>;
  /** Aborted when the worker ends. */
  stop: AbortSignal;
  /** Monotonic milliseconds; a parameter for tests. */
  now?: () => number;
};

/** The runtime counts as usable at first: a worker opens its server only after it was checked. */
export function createProbes({
  runtime,
  farm,
  log,
  stop,
  now = () => performance.now(),
}: ProbesDeps): Probes {
  let beatAt = now();
  let beats = 0;
  let paused: string | null = null;
  let unusable: string | null = null;
  let checkedAt = now();
  let isChecking = false;
  const tell = readinessLog(log);
  const whyNotReady = (): string | null => {
    const pause = unusable === null ? CHECK_EVERY_MS : CHECK_AGAIN_MS;
    if (!isChecking && now() - checkedAt >= pause) void check();
    const silent = now() - beatAt;
    if (silent >= BEAT_LATE_MS) return `Redis took no heartbeat for ${Math.round(silent / 1000)} s`;
    if (unusable !== null) return `runtime ${runtime.name}: ${unusable}`;
    return paused === null ? null : `claims nothing: ${paused}`;
  };
  const check = async (): Promise<void> => {
    isChecking = true;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(CHECK_MS)]);
    unusable = await runtime.check(signal).then(
      ({ usable, problems }) => (usable ? null : problems.join('; ') || 'unusable'),
      (error: unknown) => errorMessage(error),
    );
    checkedAt = now();
    isChecking = false;
  };
  return {
    beaten(reason) {
      beatAt = now();
      beats += 1;
      paused = reason;
    },
    whyNotReady() {
      if (stop.aborted) return 'draining';
      if (beats === 0) return 'starting: Redis took no heartbeat yet';
      const reason = whyNotReady();
      tell(reason);
      return reason;
    },
    async whyNotAlive() {
      const silent = now() - beatAt;
      if (stop.aborted || silent < BEAT_DEAD_MS) return null;
      // While Redis is away, or refuses, a new process would do no better.
      const ping = farm.ping().then(
        () => true,
        () => false,
      );
      const answered = await waitAtMost(ping, PING_MS);
      const isThere = answered.by === 'itself' && answered.value;
      if (!isThere || now() - beatAt < BEAT_DEAD_MS) return null;
      return `no heartbeat for ${Math.round(silent / 1000)} s, although Redis answers`;
    },
  };
}

/** Tells the log when readiness turns: who only sees a pod's probe fail (Kubernetes tells the status, not the text) finds the reason there. */
function readinessLog(log: ProbesDeps['log']): (reason: string | null) => void {
  let wasReady = true;
  return (reason) => {
    if ((reason === null) === wasReady) return;
    wasReady = reason === null;
    if (reason === null) log.info('ready again');
    else log.warn({ reason }, 'not ready');
  };
}
