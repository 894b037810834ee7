/**
 * BullMQ by the clock of Redis. It writes when a delayed job is due, and says which are due by now, by the clock of the node that asks:
 * one that is a day ahead would put a job off for a day, or let no delay hold.
 */
import { type BackendFactory, createRedisBackend, type RedisQueueBackend } from 'bullmq';
import type { Clock } from './clock.ts';

/** Where the time stands in the arguments of the commands that compare or keep it. */
const TIME_AT: Readonly<Record<string, number>> = { moveToActive: 12, moveToDelayed: 12, moveToFinished: 15 };
/** Of a reply that has the next job, or when there will be one: the latter. */
const DUE_AT = 3;
/** How far an argument may be from the time at which it was made. */
const MOMENT_MS = 60_000;

export const byClock =
  (clock: Clock): BackendFactory<RedisQueueBackend> =>
  (name, opts, options) => {
    const backend = createRedisBackend(name, opts, options);
    const execute = backend.execCommand.bind(backend);
    const wait = backend.waitForJob.bind(backend);
    const localOf = (time: number): number => time - clock.now() + Date.now();

    backend.execCommand = (client, command, args) => {
      const at = TIME_AT[command];
      if (at === undefined) return execute(client, command, args);
      const changed = [...args];
      if (!(Math.abs(Number(changed[at]) - Date.now()) < MOMENT_MS))
        throw new Error(`${command} of this BullMQ has no time at ${at}`);
      changed[at] = clock.now();
      const reply: unknown = execute(client, command, changed);
      return reply instanceof Promise ? reply.then(due) : reply;
    };
    const due = (reply: unknown): unknown => {
      if (!Array.isArray(reply) || !(Number(reply[DUE_AT]) > 0)) return reply;
      return reply.with(DUE_AT, localOf(Number(reply[DUE_AT])));
    };
    backend.waitForJob = async (seconds) => {
      const marker = await wait(seconds);
      return marker && marker.score > 0 ? { ...marker, score: localOf(marker.score) } : marker;
    };
    return backend;
  };
