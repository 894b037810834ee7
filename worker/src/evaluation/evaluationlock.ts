/**
 * Evaluations share the node; one that timed out gets a second try with no other evaluation beside it, so that a slow neighbour
 * is not mistaken for a slow patch. Turns are first come, first served, until waiting for such tries has cost its share of time:
 * from then on evaluations run beside them, because a patch that hangs must not stop its node.
 */

/** Share of the total evaluation time on this node that may be lost by waiting for work alone. */
const SHARE = 0.1;
/** May be lost in any case, so that short tests always get their try alone. */
const GRACE_MS = 60_000;
const LEAST_TIMER_MS = 50;

type Waiting = { alone: boolean; start: () => void };

export class EvaluationLock {
  readonly #share: number;
  readonly #graceMs: number;
  #shared = 0;
  #isAlone = false;
  #waiting: Waiting[] = [];
  /** Milliseconds of work done, and of waiting for work alone; how many wait so now, and when both were last updated. */
  #worked = 0;
  #lost = 0;
  #hindered = 0;
  #counted = performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor({ share = SHARE, graceMs = GRACE_MS } = {}) {
    this.#share = share;
    this.#graceMs = graceMs;
  }

  /** Runs beside other shared work. Rejects with the signal's reason when it is aborted before its turn. */
  shared<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#run(false, work, signal);
  }

  /** Runs with nothing else beside it while the share lasts; only one at a time in any case. Rejects as `shared` does. */
  alone<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#run(true, work, signal);
  }

  async #run<T>(alone: boolean, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#turn(alone, signal);
    try {
      return await work();
    } finally {
      this.#count();
      if (alone) this.#isAlone = false;
      else this.#shared--;
      this.#admit();
    }
  }

  #turn(alone: boolean, signal: AbortSignal): Promise<void> {
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

  /** Milliseconds that may still be lost. */
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
    const isPatient = this.#left() > 0;
    const stay: Waiting[] = [];
    for (const one of this.#waiting) {
      // While there is patience, no work overtakes another.
      const isBehind = isPatient && stay.length > 0;
      const isFree = !this.#isAlone && (!one.alone || this.#shared === 0);
      if (isBehind || !(isFree || (!isPatient && !(one.alone && this.#isAlone)))) {
        stay.push(one);
        continue;
      }
      if (one.alone) this.#isAlone = true;
      else this.#shared++;
      one.start();
    }
    this.#waiting = stay;
    this.#hindered = stay.filter(({ alone }) => !alone).length;
    clearTimeout(this.#timer);
    if (this.#hindered > 0) {
      const ms = Math.max(LEAST_TIMER_MS, this.#left() / this.#hindered);
      this.#timer = setTimeout(() => this.#admit(), ms);
    }
  }
}
