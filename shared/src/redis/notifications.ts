/** Waits for notifications that sessions have new commands. Each listener uses one blocking connection. */
import type { Redis } from 'ioredis';
import { sleep, sleepAtMost } from '../waiting/sleep.ts';

export type Notifications = {
  /** Resolves when `session` is notified, after `ms`, or when the signal aborts; never rejects. */
  wait(session: string, ms: number, signal: AbortSignal): Promise<void>;
};

const BLOCK_SECONDS = 1;
const AWAY_MS = 500;

/** Creates a listener, which reads the list while a session waits. @param list key of the list to which other processes push session ids */
export function listenForNotifications(connect: () => Redis, list: string): Notifications {
  const waiting = new Map<string, () => void>();
  /** Sessions that were notified while they did not wait. */
  const notified = new Set<string>();
  let connection: Redis | null = null;
  let listening = false;

  const listen = async (redis: Redis): Promise<void> => {
    while (waiting.size > 0) {
      try {
        const reply = await redis.blpop(list, BLOCK_SECONDS);
        const resolve = reply && waiting.get(reply[1]);
        if (resolve) resolve();
        else if (reply) notified.add(reply[1]);
      } catch {
        // Redis is unreachable or the farm is closed; waits end at their time limits.
        await sleep(AWAY_MS);
      }
    }
    listening = false;
  };

  return {
    async wait(session, ms, signal) {
      if (notified.delete(session) || signal.aborted) return;
      const done = new AbortController();
      const over = sleepAtMost(ms, AbortSignal.any([signal, done.signal]));
      waiting.set(session, () => done.abort());
      if (!listening) {
        listening = true;
        connection ??= connect();
        void listen(connection);
      }
      await over;
      waiting.delete(session);
    },
  };
}
