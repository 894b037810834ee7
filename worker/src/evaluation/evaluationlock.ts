/**
 * Evaluations share the node. One that timed out runs again alone, so that load on the node does not count as a slow patch. Evaluations
 * start in the order of arrival. When waits for exclusive runs exceed their share of time, other evaluations run beside them, so that a
 * hanging patch does not block the node.
 */

/** Share of the evaluation time on this node that evaluations may spend waiting for exclusive runs. */
const SHARE = 0.1;
/** Waiting time in milliseconds that is allowed beyond the share, so that short tests always get an exclusive run. */
const GRACE_MS = 60_000;
const LEAST_TIMER_MS = 50;

type Waiting = { alone: boolean; start: () => void };

export class EvaluationLock {
  readonly #share: number;
  readonly #graceMs: number;
  #shared = 0;
  #isAlone = false;
  #waiting: Waiting[] = [];
  /** Milliseconds of work and of waits for exclusive work, number of waiting shared evaluations, and time of the last update. */
  #worked = 0;
  #lost = 0;
  #hindered = 0;
  #counted = performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor({ share = SHARE, graceMs = GRACE_MS } = {}) {
    this.#share = share;
    this.#graceMs = graceMs;
  }

  /** Runs `work` beside other shared work. Rejects with the signal's reason when the signal aborts before the work starts. */
  shared<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#run(false, work, signal);
  }

  /**
   * Runs `work` exclusively. After waits for exclusive runs exceed their share of time, `work` may start beside shared work, but never
   * beside other exclusive work. Rejects as `shared` does.
   */
  alone<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#run(true, work, signal);
  }

  async #run<T>(alone: boolean, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#admitted(alone, signal);
    try {
      return await work();
    } finally {
      this.#count();
      if (alone) this.#isAlone = false;
      else this.#shared--;
      this.#admit();
    }
  }

  #admitted(alone: boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== one);
        this.#admit();
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
      this.#waiting.push(one);
      this.#admit();
    });
  }

  #left(): number {
    return this.#graceMs + this.#share * this.#worked - this.#lost;
  }

  #count(): void {
    const now = performance.now();
    this.#worked += (now - this.#counted) * (this.#shared + Number(this.#isAlone));
    this.#lost += (now - this.#counted) * this.#hindered;
    this.#counted = now;
  }

  #admit(): void {
    this.#count();
    const isFair = this.#left() > 0;
    const waiting: Waiting[] = [];
    for (const one of this.#waiting) {
      // While the share of time lasts, no work overtakes other work.
      const isBehind = isFair && waiting.length > 0;
      const isFree = !this.#isAlone && (!one.alone || this.#shared === 0);
      if (isBehind || !(isFree || (!isFair && !(one.alone && this.#isAlone)))) {
        waiting.push(one);
        continue;
      }
      if (one.alone) this.#isAlone = true;
      else this.#shared++;
      one.start();
    }
    this.#waiting = waiting;
    this.#hindered = waiting.filter(({ alone }) => !alone).length;
    clearTimeout(this.#timer);
    if (this.#hindered > 0) {
      const ms = Math.max(LEAST_TIMER_MS, this.#left() / this.#hindered);
      this.#timer = setTimeout(() => this.#admit(), ms);
    }
  }
}
