/** Reads the pass rates of instances: usable and passed rollouts of each instance by policy version, counted in commit. */
import { z } from 'zod';
import { readRecord } from '../records/parse.ts';
import type { PolicyConfig } from '../records/runconfig.ts';
import type { Store } from './part.ts';

/** Maximum number of characters of a policy's name in the key. */
const NAME_LENGTH = 100;

/** Policy version (`''`: none), number of usable rollouts, sum of successes; the newest version last. */
const Passes = z.array(z.tuple([z.string(), z.number(), z.number()]));
export type Passes = z.infer<typeof Passes>;

/** Returns the name under which the pass rates of a policy are stored: its registered name, else its model. */
export const passesName = ({ name, model }: Pick<PolicyConfig, 'name' | 'model'>): string =>
  (name ?? model).slice(0, NAME_LENGTH);

export const createPasses = ({ redis, keys }: Store) => ({
  /** Returns the counts of all known instances of a family, by instance id. Damaged entries are omitted. */
  async read(policy: Pick<PolicyConfig, 'name' | 'model'>, family: string): Promise<Map<string, Passes>> {
    const hash = await redis.hgetall(keys.passes(passesName(policy), family));
    return new Map(
      Object.entries(hash).flatMap(([instanceId, text]) => {
        const read = readRecord(Passes, text);
        return 'value' in read ? [[instanceId, read.value] as const] : [];
      }),
    );
  },
});
