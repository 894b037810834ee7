/** Continues an answer from the part that an earlier attempt received. */
import type { Post, TurnClient } from '@swefarm/policy';
import type { TurnRequest } from './turncontext.ts';
import type { TurnVersions } from './versions.ts';

/** Resumes an answer: `decide` starts it with the earlier part if the prompt, which is known only then, is the same. */
export function resumptionOf(
  { begun, messages, tools, onResumed }: TurnRequest,
  versions: TurnVersions,
  client: TurnClient,
) {
  let isDecided = begun === undefined;
  return {
    tokens: 0,
    seconds: 0,
    async decide(post: Post): Promise<void> {
      if (isDecided || !begun) return;
      const { log_probs: logProbs, ...part } = begun;
      const isUsed = (await client.resume?.({ ...part, logProbs }, messages, tools, post)) ?? false;
      isDecided = true;
      if (!isUsed) return;
      versions.resume(begun.versions);
      Object.assign(this, { tokens: begun.ids.length, seconds: begun.seconds });
      onResumed?.();
    },
  };
}
export type Resumption = ReturnType<typeof resumptionOf>;
