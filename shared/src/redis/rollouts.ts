/** Lists the rollouts of a run in parts, because a run may be large. Checks the sizes of the groups. */
import type { Redis } from 'ioredis';
import { SwefarmError } from '../failures/errors.ts';
import { sizeOf } from '../records/bounds.ts';
import { parseRolloutId, rolloutId } from '../records/ids.ts';
import type { Keys } from './keys.ts';

const PART = 500;
const SCAN_COUNT = 1000;
const SIZE = ' size';

type Group = { instanceId: string; size: number; left: number };
type Store = { redis: Redis; keys: Keys };

export function createRolloutLists(redis: Redis, keys: Keys) {
  const store: Store = { redis, keys };
  return {
    async *rolloutParts(runId: string): AsyncGenerator<string[]> {
      yield* idsOf(store, runId, () => true);
    },
    async *openParts(runId: string, instanceIds?: readonly string[]): AsyncGenerator<string[]> {
      // This condition skips groups without open rollouts; a value that is not a number does not skip the group.
      for await (const ids of idsOf(store, runId, ({ left }) => !(left <= 0), instanceIds)) {
        const open = await withoutResult(store, runId, ids);
        if (open.length > 0) yield open;
      }
    },
    async left(runId: string): Promise<number> {
      let sum = 0;
      for await (const part of groupsOf(store, runId)) for (const { left } of part) sum += Math.max(0, left);
      return sum;
    },
    async stillOpen(runId: string, ids: readonly string[]): Promise<string[]> {
      const open: string[] = [];
      for (let at = 0; at < ids.length; at += PART) {
        open.push(...(await stillOpenOf(store, runId, ids.slice(at, at + PART))));
      }
      return open;
    },
  };
}

/** Yields the named groups of the run, or all. Throws SwefarmError `group_out_of_bounds`. */
async function* groupsOf(store: Store, runId: string, named?: readonly string[]): AsyncGenerator<Group[]> {
  if (named) {
    for (let at = 0; at < named.length; at += PART)
      yield await readGroups(store, runId, named.slice(at, at + PART));
    return;
  }
  const seen = new Set<string>();
  let cursor = '0';
  do {
    const [next, fields] = await store.redis.hscan(store.keys.run(runId).groups, cursor, 'COUNT', SCAN_COUNT);
    const names = fields.flatMap((field, at) =>
      at % 2 === 0 && field.endsWith(SIZE) ? [field.slice(0, -SIZE.length)] : [],
    );
    // HSCAN may return a field twice.
    const fresh = names.filter((name) => !seen.has(name));
    for (const name of fresh) seen.add(name);
    if (fresh.length > 0) yield await readGroups(store, runId, fresh);
    cursor = next;
  } while (cursor !== '0');
}

async function readGroups({ redis, keys }: Store, runId: string, names: readonly string[]): Promise<Group[]> {
  const fields = names.flatMap((name) => [`${name}${SIZE}`, `${name} left`]);
  const values = await redis.hmget(keys.run(runId).groups, ...fields);
  return names.map((instanceId, at) => {
    const size = sizeOf(values[2 * at]);
    if (size === null) {
      throw new SwefarmError(
        'group_out_of_bounds',
        `run ${runId}: the size of group ${instanceId} is out of bounds: ${values[2 * at]}`,
      );
    }
    return { instanceId, size, left: Number(values[2 * at + 1] ?? size) };
  });
}

/** Yields the ids of the rollouts of groups for which `wanted` returns true. */
async function* idsOf(
  store: Store,
  runId: string,
  wanted: (group: Group) => boolean,
  named?: readonly string[],
): AsyncGenerator<string[]> {
  let part: string[] = [];
  for await (const groups of groupsOf(store, runId, named)) {
    for (const { instanceId, size } of groups.filter(wanted)) {
      for (let index = 0; index < size; index++) {
        part.push(rolloutId(runId, instanceId, index));
        if (part.length < PART) continue;
        yield part;
        part = [];
      }
    }
  }
  if (part.length > 0) yield part;
}

async function withoutResult(
  { redis, keys }: Store,
  runId: string,
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return [];
  const committed = await redis.hmget(keys.run(runId).committed, ...ids);
  return ids.filter((_, at) => committed[at] === null);
}

async function stillOpenOf(store: Store, runId: string, ids: readonly string[]): Promise<string[]> {
  const rollouts = ids.map((id) => ({ id, ...parseRolloutId(id) }));
  const names = [...new Set(rollouts.map(({ instanceId }) => instanceId))];
  const sizes = await store.redis.hmget(
    store.keys.run(runId).groups,
    ...names.map((name) => `${name}${SIZE}`),
  );
  const sizeByName = new Map(names.map((name, at) => [name, sizeOf(sizes[at]) ?? 0]));
  const opened = rollouts.filter(({ instanceId, index }) => index < (sizeByName.get(instanceId) ?? 0));
  return await withoutResult(
    store,
    runId,
    opened.map(({ id }) => id),
  );
}
