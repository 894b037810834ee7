/** Selects a stored rollout for each rollout of a dry run. Rollouts of an instance get its stored rollouts in an order that the seed fixes. */

import { readFile } from 'node:fs/promises';
import {
  type ArtifactContent,
  type DryRun,
  decodeArtifact,
  errorMessage,
  parseRolloutId,
  RolloutFailure,
  type StoredRollout,
  shuffledBy,
  uniformOf,
} from '@swefarm/shared';

/** Identifies a rollout in random decisions. `visit` replaces the random run id: the number of the run among the instance's runs, from 0. */
export type Name = { instance: string; visit: number; index: number; text: string };

export function openStored({ rollouts, any, script }: DryRun) {
  const { seed } = script;
  const shuffled = (of: readonly StoredRollout[]) =>
    shuffledBy(of, ({ rollout_id: id }) => `${seed}/order/${id}`);
  const byInstance = new Map<string, StoredRollout[]>();
  for (const [instance, own] of Map.groupBy(rollouts, ({ instance_id }) => instance_id))
    byInstance.set(instance, shuffled(own));
  const all = any ? shuffled(rollouts) : [];
  const visits = new Map<string, string[]>();
  return {
    /** Returns the name of a rollout. `visit` counts the runs since the start of this process. */
    nameOf(rolloutId: string): Name {
      const { runId, instanceId: instance, index } = parseRolloutId(rolloutId);
      const runs = visits.get(instance) ?? [];
      visits.set(instance, runs);
      if (!runs.includes(runId)) runs.push(runId);
      const visit = runs.indexOf(runId);
      return { instance, visit, index, text: `${seed}/${instance}/${visit}/${index}` };
    },
    /** Returns the stored rollout. Throws RolloutFailure `instance_invalid` if the instance has none. */
    choose({ instance, visit, index }: Name): StoredRollout {
      const among = byInstance.get(instance) ?? all;
      const first = Math.floor(uniformOf(`${seed}/first/${instance}/${visit}`) * among.length);
      const chosen = among[(first + index) % among.length];
      if (chosen) return chosen;
      const why = `dry run: no rollout of ${instance} is stored; add one to --replay, or use --replay-any`;
      throw new RolloutFailure('instance_invalid', why);
    },
    /** Reads the artifact. Throws RolloutFailure `artifact_store` if it is unreadable. */
    async read({ rollout_id, artifact }: StoredRollout): Promise<ArtifactContent> {
      try {
        return await decodeArtifact(await readFile(artifact));
      } catch (error) {
        const why = `dry run: artifact ${artifact} of ${rollout_id}: ${errorMessage(error)}`;
        throw new RolloutFailure('artifact_store', why, { cause: error });
      }
    },
  };
}
