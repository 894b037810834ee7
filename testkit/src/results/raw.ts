/** What other versions, and faults, leave in Redis: written past the farm's own doors, which would refuse it. */
import { type Farm, parseRolloutId } from '@swefarm/shared';

export type Say = (command: string, ...args: (string | number | Buffer)[]) => Promise<unknown>;

/** One command to the farm's Redis. */
export function rawRedis(farm: Farm): Say {
  const connection = farm.bullConnection() as unknown as { call: Say };
  return (command, ...args) => connection.call(command, ...args);
}

/** A rollout is committed with these bytes as its result, in the form that every version since the first has written. */
export async function plantResult(
  say: Say,
  prefix: string,
  rolloutId: string,
  text: string,
): Promise<string> {
  const { runId, instanceId } = parseRolloutId(rolloutId);
  const run = `${prefix}:run:${runId}`;
  const streamId = String(await say('XADD', `${run}:results`, '*', 'r', text));
  await say('HSET', `${run}:committed`, rolloutId, `1 judged ${streamId} w1`);
  await say('HINCRBY', `${run}:groups`, `${instanceId} left`, -1);
  await say('HINCRBY', `${run}:counts`, 'committed', 1);
  return streamId;
}
