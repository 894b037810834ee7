/** Detects that a policy is paused for too long, so that a dead trainer does not occupy slots and sandboxes. */
import {
  DEFAULT_POLICY,
  type Farm,
  followsPolicy,
  type PolicyConfig,
  type PolicyRecord,
  refusedByRedis,
  sleepAtMost,
  type WorkerConfig,
} from '@swefarm/shared';
import type { FollowedPolicy } from './watch.ts';

type Services = { farm: Pick<Farm, 'policies' | 'clock'>; config: WorkerConfig };

/** Returns why rollouts must not wait longer for this policy; null: they may wait. `now` and `record.changed_at` are times of Redis. */
function overdue(record: PolicyRecord | null, now: number, { config }: Services): string | null {
  if (record === null || record.state === 'serving') return null;
  const seconds = (now - record.changed_at) / 1000;
  if (seconds <= config.policy_pause_limit_seconds) return null;
  const shown = Math.floor(seconds);
  return `policy ${record.name} has been ${record.state} for ${shown} s (policy_pause_limit_seconds)`;
}

const EVERY_MS = 1_000;

/** Checks once a second until it is disposed. Reads Redis again before `onOverdue`, because the policy may serve again after an outage. */
export function watchPauseLimit(
  { record, refresh }: FollowedPolicy,
  services: Services,
  onOverdue: (why: string) => void,
): Disposable {
  const { clock } = services.farm;
  const over = new AbortController();
  const check = async (): Promise<void> => {
    if (overdue(record(), clock.now(), services) === null) return;
    const now = await clock.ask();
    await refresh();
    const why = overdue(record(), now, services);
    if (why === null || over.signal.aborted) return;
    over.abort();
    onOverdue(why);
  };
  const watch = async (): Promise<void> => {
    for (;;) {
      await sleepAtMost(EVERY_MS, over.signal);
      if (over.signal.aborted) return;
      // While Redis is unavailable, the last record may be outdated, so the next check decides.
      await check().catch(() => undefined);
    }
  };
  void watch();
  return { [Symbol.dispose]: () => over.abort() };
}

/** Returns whether a rollout's policy is paused for longer than the limit; false for an unreadable record. Throws refusals of Redis. */
export async function isPausedTooLong(config: PolicyConfig, services: Services): Promise<boolean> {
  const { policies, clock } = services.farm;
  const read = policies.get([config.name ?? DEFAULT_POLICY]).catch((error: unknown) => {
    if (refusedByRedis(error)) throw error;
    return [];
  });
  const [record] = await read;
  if (!record || record.state === 'serving' || !followsPolicy(config, record)) return false;
  return overdue(record, await clock.ask(), services) !== null;
}
