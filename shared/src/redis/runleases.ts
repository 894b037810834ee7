/** Leases of runs. A run that was submitted with a lease is cancelled when the submitter stops renewing it. */
import { Part } from './part.ts';

export class RunLeases extends Part {
  /** Sets the ends of leases. Returns the runs that still exist; other runs get no lease. */
  async renew(runIds: readonly string[], leaseMs: number): Promise<string[]> {
    const exists = await Promise.all(runIds.map((id) => this.redis.exists(this.keys.run(id).record)));
    const alive = runIds.filter((_, at) => exists[at] === 1);
    const end = (await this.store.clock.ask()) + leaseMs;
    if (alive.length > 0) await this.redis.zadd(this.keys.runLeases, ...alive.flatMap((id) => [end, id]));
    return alive;
  }

  /** Returns the runs whose lease has expired. */
  async overdue(): Promise<string[]> {
    return await this.redis.zrangebyscore(this.keys.runLeases, 0, await this.store.clock.ask());
  }

  /** Removes a lease. The run goes on. */
  async drop(runId: string): Promise<void> {
    await this.redis.zrem(this.keys.runLeases, runId);
  }
}
