/**
 * A model of the queue: it delivers at least once, under locks that can be lost while their worker is alive, with BullMQ's limits as
 * parameters. The tests run delivered jobs against the real scripts on a real Redis.
 */

export type QueueRules = {
  /** Maximum number of lost locks; the queue fails a job that loses more. */
  maxStalledCount: number;
  /** What ends a rollout: the commit, or the queue's "job completed". */
  outcomeBy: 'commit' | 'completion';
};

export type Delivery = { rolloutId: string; token: number };

export type Copy = ReadonlyMap<string, Readonly<Job>>;

type Job = { state: 'waiting' | 'active' | 'gone' | 'failed'; token: number; stalls: number };

export class ModelQueue {
  readonly #jobs = new Map<string, Job>();
  readonly #rules: QueueRules;
  #tokens = 0;

  constructor(rules: QueueRules) {
    this.#rules = rules;
  }

  /** Adds a job; like addBulk, ignores ids of existing jobs. */
  add(rolloutId: string): void {
    const job = this.#jobs.get(rolloutId);
    if (!job || job.state === 'gone') this.#jobs.set(rolloutId, { state: 'waiting', token: 0, stalls: 0 });
  }

  take(choice: number): Delivery | null {
    const waiting = [...this.#jobs].filter(([, job]) => job.state === 'waiting');
    const [rolloutId, job] = waiting[choice % Math.max(1, waiting.length)] ?? [];
    if (rolloutId === undefined || !job) return null;
    Object.assign(job, { state: 'active', token: ++this.#tokens });
    return { rolloutId, token: job.token };
  }

  /** Expires the lock of a job. */
  stall({ rolloutId, token }: Delivery): void {
    const job = this.#jobs.get(rolloutId);
    if (!job || job.token !== token || job.state !== 'active') return;
    job.stalls += 1;
    job.state = job.stalls > this.#rules.maxStalledCount ? 'failed' : 'waiting';
  }

  /** Completes a job; returns false if the delivery no longer has the lock. */
  complete({ rolloutId, token }: Delivery): boolean {
    return this.#leave(rolloutId, token, 'gone');
  }

  giveBack({ rolloutId, token }: Delivery): void {
    this.#leave(rolloutId, token, 'waiting');
  }

  /** Loses one job, as Redis does when a restart loses the last second of writes. */
  lose(rolloutId: string): void {
    this.#jobs.delete(rolloutId);
  }

  /** Expires all locks but these. */
  expire(delivered: readonly Delivery[]): void {
    const tokens = new Set(delivered.map(({ token }) => token));
    for (const [rolloutId, { token }] of this.#jobs) if (!tokens.has(token)) this.stall({ rolloutId, token });
  }

  /** Returns a copy of the jobs for {@link restore}. */
  copy(): Copy {
    return new Map([...this.#jobs].map(([id, job]) => [id, { ...job }]));
  }

  restore(copy: Copy): void {
    this.#jobs.clear();
    for (const [id, job] of copy) this.#jobs.set(id, { ...job });
  }

  missing(rolloutIds: readonly string[]): string[] {
    return rolloutIds.filter((id) => !['waiting', 'active'].includes(this.#jobs.get(id)?.state ?? 'gone'));
  }

  #leave(rolloutId: string, token: number, state: Job['state']): boolean {
    const job = this.#jobs.get(rolloutId);
    if (!job || job.token !== token || job.state !== 'active') return false;
    job.state = state;
    return true;
  }
}
