/** Lists the rollouts of a run in parts, because a run may be large. Checks the sizes of the groups. */
import { SwefarmError } from '../failures/errors.ts';
import { sizeOf } from '../records/bounds.ts';
import { parseRolloutId, rolloutId } from '../records/ids.ts';
import { pairsIn } from './pairs.ts';
import { Part } from './part.ts';

const BATCH = 500;
const SCAN_COUNT = 1000;
const SIZE = ' size';

type Group = { instanceId: string; size: number; left: number };

/** All methods but `stillOpen` throw SwefarmError `group_out_of_bounds` for an invalid size of a group. */
export class RolloutLists extends Part {
  /** Yields all rollouts of the run by group, a few hundred at a time. */
  async *rolloutParts(runId: string): AsyncGenerator<string[]> {
    yield* this.#idsOf(runId, () => true);
  }

  /** Yields rollouts without a result, of these instances or of all. */
  async *openParts(runId: string, instanceIds?: readonly string[]): AsyncGenerator<string[]> {
    // This condition skips groups without open rollouts; a value that is not a number does not skip the group.
    for await (const ids of this.#idsOf(runId, ({ left }) => !(left <= 0), instanceIds)) {
      const open = await this.#withoutResult(runId, ids);
      if (open.length > 0) yield open;
    }
  }

  async rollouts(runId: string): Promise<string[]> {
    return (await Array.fromAsync(this.rolloutParts(runId))).flat();
  }

  /** Returns all rollouts without a result. */
  async open(runId: string): Promise<string[]> {
    return (await Array.fromAsync(this.openParts(runId))).flat();
  }

  /** Returns the number of rollouts without a result. */
  async left(runId: string): Promise<number> {
    let sum = 0;
    for await (const part of this.#groupsOf(runId)) for (const { left } of part) sum += Math.max(0, left);
    return sum;
  }

  /** Returns which of these rollouts are opened and have no result. */
  async stillOpen(runId: string, rolloutIds: readonly string[]): Promise<string[]> {
    const open: string[] = [];
    for (let at = 0; at < rolloutIds.length; at += BATCH) {
      const rollouts = rolloutIds.slice(at, at + BATCH).map((id) => ({ id, ...parseRolloutId(id) }));
      const names = [...new Set(rollouts.map(({ instanceId }) => instanceId))];
      const sizes = await this.redis.hmget(
        this.keys.run(runId).groups,
        ...names.map((name) => `${name}${SIZE}`),
      );
      const sizeByName = new Map(names.map((name, index) => [name, sizeOf(sizes[index]) ?? 0]));
      const opened = rollouts
        .filter(({ instanceId, index }) => index < (sizeByName.get(instanceId) ?? 0))
        .map(({ id }) => id);
      open.push(...(await this.#withoutResult(runId, opened)));
    }
    return open;
  }

  /** Yields the named groups of the run, or all. */
  async *#groupsOf(runId: string, named?: readonly string[]): AsyncGenerator<Group[]> {
    if (named) {
      for (let at = 0; at < named.length; at += BATCH)
        yield await this.#readGroups(runId, named.slice(at, at + BATCH));
      return;
    }
    const seen = new Set<string>();
    const stream = this.redis.hscanStream(this.keys.run(runId).groups, { count: SCAN_COUNT });
    for await (const pairs of pairsIn(stream)) {
      const fields = pairs
        .map(([field]) => field)
        .filter((field) => field.endsWith(SIZE) && !seen.has(field));
      for (const field of fields) seen.add(field);
      const names = [...new Set(fields)].map((field) => field.slice(0, -SIZE.length));
      if (names.length > 0) yield await this.#readGroups(runId, names);
    }
  }

  async #readGroups(runId: string, names: readonly string[]): Promise<Group[]> {
    const fields = names.flatMap((name) => [`${name}${SIZE}`, `${name} left`]);
    const values = await this.redis.hmget(this.keys.run(runId).groups, ...fields);
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
  async *#idsOf(
    runId: string,
    wanted: (group: Group) => boolean,
    named?: readonly string[],
  ): AsyncGenerator<string[]> {
    let part: string[] = [];
    for await (const groups of this.#groupsOf(runId, named)) {
      for (const { instanceId, size } of groups.filter(wanted)) {
        for (let index = 0; index < size; index++) {
          part.push(rolloutId(runId, instanceId, index));
          if (part.length < BATCH) continue;
          yield part;
          part = [];
        }
      }
    }
    if (part.length > 0) yield part;
  }

  async #withoutResult(runId: string, ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const committed = await this.redis.hmget(this.keys.run(runId).committed, ...ids);
    return ids.filter((_, at) => committed[at] === null);
  }
}
