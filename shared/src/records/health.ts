/** What was once found out about an instance by running it: facts of one image, one grader and one kind of network. */
import { z } from 'zod';

export const InstanceHealth = z.object({
  image_digest: z.string(),
  grader: z.string(),
  network: z.enum(['none', 'egress']),
  /** Evaluations of gold that gave a verdict; flakiness shows only in several. */
  times: z.number().int().positive(),
  /** Gold was resolved every time. */
  gold_resolves: z.boolean(),
  /** The untouched tree was; such an instance rewards everybody. Null: it gave no verdict. */
  noop_resolves: z.boolean().nullable(),
  /** Seconds of gold's tests, the longest. */
  gold_seconds: z.number(),
  /** Tests of FAIL_TO_PASS and PASS_TO_PASS that gold passed once and failed once. */
  flaky: z.array(z.string()),
  /** Tests of FAIL_TO_PASS that gold leaves skipped or expected to fail; absent: nobody looked. */
  unpassed: z.array(z.string()).optional(),
  /** Gold is resolved with a network and is not without one. */
  needs_egress: z.boolean(),
  /** ISO 8601, UTC. */
  checked_at: z.string(),
});
export type InstanceHealth = z.infer<typeof InstanceHealth>;

/** Why nobody should learn from the instance; null when gold resolves and nothing does not. */
export function brokenBecause(health: InstanceHealth): string | null {
  if (!health.gold_resolves) {
    if (health.needs_egress) return 'gold needs the network';
    return health.flaky.length > 0
      ? `gold is not always resolved (flaky: ${health.flaky.slice(0, 3).join(', ')})`
      : 'gold is not resolved';
  }
  return health.noop_resolves ? 'the untouched tree is resolved already' : null;
}
