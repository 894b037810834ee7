/**
 * Notices to Redis that failed because it was away. They are sent again with each heartbeat, and before anything that depends on
 * them: otherwise a call would stay with a gateway that no longer waits for it, and its rollout would run to the end for nobody.
 */

type Notice = () => Promise<void>;
type Queue = { notices: Notice[]; flushing: Promise<void> | null };

export class PendingNotices {
  readonly #queues = new Map<string, Queue>();

  /** Sends it now, else as soon as that is possible; never throws. Notices of one `key` are sent in their order. */
  async send(key: string, notice: Notice): Promise<void> {
    const queue = this.#queues.get(key) ?? { notices: [], flushing: null };
    this.#queues.set(key, queue);
    queue.notices.push(notice);
    await this.flush(key).catch(() => undefined);
  }

  /** Resolves when all notices of a key are sent. Throws the error of the first that cannot be. */
  flush(key: string): Promise<void> {
    const queue = this.#queues.get(key);
    if (!queue) return Promise.resolve();
    queue.flushing ??= this.#sendAll(key, queue.notices).finally(() => {
      queue.flushing = null;
    });
    return queue.flushing;
  }

  /** Tries all of them once more; never throws. */
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
