/** The stored rollouts of a dry run, and which of them a rollout gets: those of its instance in turn, in an order that the seed determines. */

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

/** How a rollout is named in seeds: run ids are random, so the number of the run among those with its instance stands for them. */
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
    /** Names a rollout. The number of its run counts runs of this process. */
    nameOf(rolloutId: string): Name {
      const { runId, instanceId: instance, index } = parseRolloutId(rolloutId);
      const runs = visits.get(instance) ?? [];
      visits.set(instance, runs);
      if (!runs.includes(runId)) runs.push(runId);
      const visit = runs.indexOf(runId);
      return { instance, visit, index, text: `${seed}/${instance}/${visit}/${index}` };
    },
    /** Throws RolloutFailure `instance_invalid` if no rollout of the instance is stored. */
    choose({ instance, visit, index }: Name): StoredRollout {
      const among = byInstance.get(instance) ?? all;
      const first = Math.floor(uniformOf(`${seed}/first/${instance}/${visit}`) * among.length);
      const chosen = among[(first + index) % among.length];
      if (chosen) return chosen;
      const why = `dry run: no rollout of ${instance} is stored; add one to --replay, or use --replay-any`;
      throw new RolloutFailure('instance_invalid', why);
    },
    /** Throws RolloutFailure `artifact_store` for an artifact that cannot be read. */
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
