/**
 * Queues notices that a call was answered, dropped or abandoned. Each heartbeat sends failed notices to Redis again, and so does the next
 * request for the same call. If a notice were lost, the rollout of the call would run although no caller waits for it.
 */

type Notice = () => Promise<void>;
type Queue = { notices: Notice[]; flushing: Promise<void> | null };

export class PendingNotices {
  readonly #queues = new Map<string, Queue>();

  /** Sends a notice now, or later if Redis fails. Notices of the same `key` are sent in order. Never throws. */
  async send(key: string, notice: Notice): Promise<void> {
    const queue = this.#queues.get(key) ?? { notices: [], flushing: null };
    this.#queues.set(key, queue);
    queue.notices.push(notice);
    await this.flush(key).catch(() => undefined);
  }

  /** Sends all queued notices of a key. Throws the error of the first notice that fails. */
  flush(key: string): Promise<void> {
    const queue = this.#queues.get(key);
    if (!queue) return Promise.resolve();
    queue.flushing ??= this.#sendAll(key, queue.notices).finally(() => {
      queue.flushing = null;
    });
    return queue.flushing;
  }

  /** Tries to send all queued notices. Never throws. */
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
