/** Makes BullMQ use the clock of Redis. By default BullMQ uses the clock of its node, and a wrong clock shortens or extends delays. */
import { type BackendFactory, createRedisBackend, type RedisQueueBackend } from 'bullmq';
import type { Clock } from './clock.ts';

/** Position of the time in the arguments of each command. */
const TIME_AT: Readonly<Record<string, number>> = { moveToActive: 12, moveToDelayed: 12, moveToFinished: 15 };
/** Position of the due time of the next job in a reply. */
const DUE_AT = 3;
/** Maximum difference in ms between the argument and the time of the node; more means that the argument is not the time. */
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
