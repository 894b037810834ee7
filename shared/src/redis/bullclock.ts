/**
 * BullMQ with the clock of Redis. BullMQ takes the time from the clock of its own node, both when it delays a job and when it looks
 * for jobs that are due: a clock that is a day ahead would delay a job for a day, or end every delay at once.
 */
import { type BackendFactory, createRedisBackend, type RedisQueueBackend } from 'bullmq';
import type { Clock } from './clock.ts';

/** The position of the time among the arguments of the commands that compare or store it. */
const TIME_AT: Readonly<Record<string, number>> = { moveToActive: 12, moveToDelayed: 12, moveToFinished: 15 };
/** Of a reply with the next job, or with the time of the next job: the position of that time. */
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
