/** Hands back rollouts that wait too long for a paused policy: they must not hold slots and sandboxes for a trainer that died. */
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

/** Why rollouts stop waiting for this policy; null while it serves, or may soon. `now` is Redis's time, as is the record's. */
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

/** Checks until it is disposed. Reads Redis first: after an outage this worker may not know yet that the policy serves again. */
export function watchPauseLimit({ followed, clock, limitMs, onOverdue }: PauseLimitDeps): Disposable {
  let over = false;
  let asking = false;
  const look = async (): Promise<void> => {
    if (asking || overdue(followed.record(), clock.now(), limitMs) === null) return;
    asking = true;
    try {
      const now = await clock.ask();
      await followed.refresh();
      const why = overdue(followed.record(), now, limitMs);
      if (why === null || over) return;
      over = true;
      onOverdue(why);
    } catch {
      // Redis is away: the record read last may be outdated.
    } finally {
      asking = false;
    }
  };
  const timer = setInterval(() => void look(), EVERY_MS);
  return {
    [Symbol.dispose]() {
      over = true;
      clearInterval(timer);
    },
  };
}

/** Whether a rollout that follows this policy would only wait. A record that cannot be read delays no rollout. */
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
