/**
 * Notices that could not be written to Redis. Each heartbeat sends them again, and so does every request that depends on them.
 * A lost notice would leave a call with a gateway that no longer waits, and its rollout would run without a caller.
 */

type Notice = () => Promise<void>;
type Queue = { notices: Notice[]; flushing: Promise<void> | null };

export class PendingNotices {
  readonly #queues = new Map<string, Queue>();

  /** Sends a notice now or later, in order for each `key`. Never throws. */
  async send(key: string, notice: Notice): Promise<void> {
    const queue = this.#queues.get(key) ?? { notices: [], flushing: null };
    this.#queues.set(key, queue);
    queue.notices.push(notice);
    await this.flush(key).catch(() => undefined);
  }

  /** Sends all notices of a key. Throws the error of the first that fails. */
  flush(key: string): Promise<void> {
    const queue = this.#queues.get(key);
    if (!queue) return Promise.resolve();
    queue.flushing ??= this.#sendAll(key, queue.notices).finally(() => {
      queue.flushing = null;
    });
    return queue.flushing;
  }

  /** Tries to send all notices. Never throws. */
  async flushAll(): Promise<void> {
    for (const key of [...this.#queues.keys()]) await this.flush(key).catch(() => undefined);
  }

  async #sendAll(key: string, notices: Notice[]): Promise<void> {
    for (let [notice] = notices; notice !== undefined; [notice] = notices) {
      await notice();
      notices.shift();
    }
    this.#queues.delete(key);
  }
}
