/**
 * A model of how the queue delivers, faithful in what matters to the protocol: at least once, under a lock that can be
 * lost while its holder lives, with BullMQ's own limits as parameters. What it hands out is run against the real
 * scripts on a real Redis.
 */

export type QueueRules = {
  /** Locks that may be lost before the queue fails the job by itself. */
  maxStalledCount: number;
  /** Whose word ends a rollout: our commit, or the queue's own "job completed". */
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

  /** As addBulk: an id that is there already is ignored. */
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

  /** The lock ran out: the holder died, or only seemed to. */
  stall({ rolloutId, token }: Delivery): void {
    const job = this.#jobs.get(rolloutId);
    if (!job || job.token !== token || job.state !== 'active') return;
    job.stalls += 1;
    job.state = job.stalls > this.#rules.maxStalledCount ? 'failed' : 'waiting';
  }

  /** True when the queue took it: only from the holder of the lock. */
  complete({ rolloutId, token }: Delivery): boolean {
    return this.#leave(rolloutId, token, 'gone');
  }

  giveBack({ rolloutId, token }: Delivery): void {
    this.#leave(rolloutId, token, 'waiting');
  }

  /** The queue's data is lost for one job: a restart without its last second. */
  lose(rolloutId: string): void {
    this.#jobs.delete(rolloutId);
  }

  /** The locks of all but these have run out. */
  expire(held: readonly Delivery[]): void {
    const tokens = new Set(held.map(({ token }) => token));
    for (const [rolloutId, { token }] of this.#jobs) if (!tokens.has(token)) this.stall({ rolloutId, token });
  }

  /** What is kept of it in a copy of Redis; a later call with it puts everything back as it was. */
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
