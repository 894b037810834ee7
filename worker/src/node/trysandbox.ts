/** Starts a trial sandbox from the image of the last failed rollout, to distinguish faults of the node from faults of a run. */

import { diskIsFull, INTERNAL_SPEC } from '@swefarm/sandbox';
import { RolloutFailure } from '@swefarm/shared';
import type { AttemptServices, FailedRollout } from '../rollout/context.ts';
import { isOfTheNode } from './breaker.ts';

const TRIAL_MS = 60_000;

/** Returns false when the node is at fault. A missing image is not the node's fault. */
export async function trySandbox(
  { runtime, owner }: Pick<AttemptServices, 'runtime' | 'owner'>,
  sample: Pick<FailedRollout, 'image' | 'instance'> | null,
  stop: AbortSignal,
): Promise<boolean> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(TRIAL_MS)]);
  if (!(await runtime.check(signal)).usable || (await diskIsFull(runtime))) return false;
  // A dry run on `host` needs no image and no engine.
  if (sample === null || !runtime.isolates) return true;
  try {
    const image = await runtime.ensureImage(sample.image, signal, sample.instance);
    const spec = { ...INTERNAL_SPEC, image, owner: { ...owner, rollout_id: 'trial', attempt: 0 } };
    await using container = await runtime.start(spec, signal);
    const options = { timeoutMs: TRIAL_MS, maxOutputBytes: 1_000, signal };
    return (await container.exec(['/bin/sh', '-c', 'exit 0'], options)).exitCode === 0;
  } catch (error) {
    return error instanceof RolloutFailure && !isOfTheNode(error.failureClass);
  }
}
