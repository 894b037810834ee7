/** Writes records to Redis that other versions and faults leave there and that the farm itself would refuse. */
import { type Farm, parseRolloutId } from '@swefarm/shared';

export type RedisCommand = (command: string, ...args: (string | number | Buffer)[]) => Promise<unknown>;

/** Sends one command to the farm's Redis. */
export function rawRedis(farm: Farm): RedisCommand {
  const connection = farm.bullConnection() as unknown as { call: RedisCommand };
  return (command, ...args) => connection.call(command, ...args);
}

/** Commits a rollout with these bytes as its result, in the form that every version has written. */
export async function plantResult(
  call: RedisCommand,
  prefix: string,
  rolloutId: string,
  text: string,
): Promise<string> {
  const { runId, instanceId } = parseRolloutId(rolloutId);
  const run = `${prefix}:run:${runId}`;
  const streamId = String(await call('XADD', `${run}:results`, '*', 'r', text));
  await call('HSET', `${run}:committed`, rolloutId, `1 judged ${streamId} w1`);
  await call('HINCRBY', `${run}:groups`, `${instanceId} left`, -1);
  await call('HINCRBY', `${run}:counts`, 'committed', 1);
  return streamId;
}
