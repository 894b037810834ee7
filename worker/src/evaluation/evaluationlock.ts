/**
 * Evaluations share the node; one that timed out gets a second try with no other evaluation beside it, so that a slow neighbour is
 * not mistaken for a slow patch. First come, first served, until those who wait for such a try have lost their share of time by it:
 * from then on they work beside it, for a patch that hangs must not stop its node.
 */
export type EvaluationLock = {
  /** Runs beside other shared work. Rejects with the signal's reason when it is aborted before its turn. */
  shared<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Runs with nothing else beside it, as long as the share lasts; one at a time in any case. Rejects as `shared` does. */
  alone<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
};

/** Of the time that evaluations have taken here, all together, so much may be lost by waiting for work alone. */
const SHARE = 0.1;
/** May be lost in any case: short tests are always tried alone. */
const GRACE_MS = 60_000;
const LEAST_TIMER_MS = 50;

type Waiting = { alone: boolean; start: () => void };

export function createEvaluationLock({ share = SHARE, graceMs = GRACE_MS } = {}): EvaluationLock {
  let readers = 0;
  let writing = false;
  let waiting: Waiting[] = [];
  /** Milliseconds of work done, and of waiting for work alone; how many wait so now, since when. */
  let worked = 0;
  let lost = 0;
  let hindered = 0;
  let counted = performance.now();
  let timer: NodeJS.Timeout | undefined;

  const left = (): number => graceMs + share * worked - lost;

  const count = (): void => {
    const now = performance.now();
    worked += (now - counted) * (readers + Number(writing));
    lost += (now - counted) * hindered;
    counted = now;
  };

  const admit = (): void => {
    count();
    const patient = left() > 0;
    const stay: Waiting[] = [];
    for (const one of waiting) {
      // Nobody overtakes, while there is patience.
      const behind = patient && stay.length > 0;
      const free = one.alone ? !writing && (readers === 0 || !patient) : !writing || !patient;
      if (behind || !free) {
        stay.push(one);
        continue;
      }
      if (one.alone) writing = true;
      else readers++;
      one.start();
    }
    waiting = stay;
    hindered = waiting.filter(({ alone }) => !alone).length;
    clearTimeout(timer);
    if (hindered > 0) timer = setTimeout(admit, Math.max(LEAST_TIMER_MS, left() / hindered));
  };

  const turn = (alone: boolean, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        waiting = waiting.filter((other) => other !== one);
        admit();
        reject(signal.reason);
      };
      const one: Waiting = {
        alone,
        start() {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      waiting.push(one);
      admit();
    });

  const hold = async <T>(alone: boolean, work: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    await turn(alone, signal);
    try {
      return await work();
    } finally {
      count();
      if (alone) writing = false;
      else readers--;
      admit();
    }
  };

  return {
    shared: (work, signal) => hold(false, work, signal),
    alone: (work, signal) => hold(true, work, signal),
  };
}
