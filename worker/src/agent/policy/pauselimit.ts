/** Detects that a policy is paused for too long, so that a dead trainer does not occupy slots and sandboxes. */
import {
  type Clock,
  DEFAULT_POLICY,
  type Farm,
  followsPolicy,
  type PolicyConfig,
  type PolicyRecord,
  refusedByRedis,
} from '@swefarm/shared';
import type { FollowedPolicy } from './watch.ts';

/** Returns why rollouts must not wait longer for this policy; null: they may wait. `now` and `record.changed_at` are times of Redis. */
function overdue(record: PolicyRecord | null, now: number, limitMs: number): string | null {
  if (record === null || record.state === 'serving' || now - record.changed_at <= limitMs) return null;
  const seconds = Math.floor((now - record.changed_at) / 1000);
  return `policy ${record.name} has been ${record.state} for ${seconds} s (policy_pause_limit_seconds)`;
}

type PauseLimitDeps = {
  followed: Pick<FollowedPolicy, 'record' | 'refresh'>;
  clock: Clock;
  limitMs: number;
  onOverdue(why: string): void;
};

const EVERY_MS = 1_000;

/** Checks once a second until it is disposed. Reads Redis again before `onOverdue`, because the policy may serve again after an outage. */
export function watchPauseLimit({ followed, clock, limitMs, onOverdue }: PauseLimitDeps): Disposable {
  let over = false;
  let checking = false;
  const check = async (): Promise<void> => {
    if (checking || overdue(followed.record(), clock.now(), limitMs) === null) return;
    checking = true;
    try {
      const now = await clock.ask();
      await followed.refresh();
      const why = overdue(followed.record(), now, limitMs);
      if (why === null || over) return;
      over = true;
      onOverdue(why);
    } catch {
      // Redis is unavailable, and the last record may be outdated, so the next check decides.
    } finally {
      checking = false;
    }
  };
  const timer = setInterval(() => void check(), EVERY_MS);
  return {
    [Symbol.dispose]() {
      over = true;
      clearInterval(timer);
    },
  };
}

/** Returns whether the policy of a rollout has been paused for longer than `limitMs`; false if the record cannot be read. */
export async function isPausedTooLong(
  config: PolicyConfig,
  { policies, clock }: Pick<Farm, 'policies' | 'clock'>,
  limitMs: number,
): Promise<boolean> {
  const read = policies.get([config.name ?? DEFAULT_POLICY]).catch((error: unknown) => {
    if (refusedByRedis(error)) throw error;
    return [];
  });
  const [record] = await read;
  if (!record || record.state === 'serving' || !followsPolicy(config, record)) return false;
  return overdue(record, await clock.ask(), limitMs) !== null;
}
