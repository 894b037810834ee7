/** Computes the deadline of a run by the clock of Redis, which all workers use, because the clock of the submitter may be wrong. */
import { type Farm, type RunRecord, UsageError } from '@swefarm/shared';

const SECONDS: Record<string, number> = { '': 1, s: 1, m: 60, h: 3600, d: 24 * 3600 };

function spanMs(text: string): number | null {
  const span = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text.trim());
  return span && Math.round(Number(span[1]) * (SECONDS[span[2] ?? ''] ?? 1) * 1000);
}

/** Returns milliseconds since the epoch; a span such as `2h` counts from now by the local clock. Throws UsageError. */
export function parseDeadline(text: string): number {
  const span = spanMs(text);
  const instant = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  const at = span === null ? instant : Date.now() + span;
  if (!Number.isNaN(at)) return Math.round(at);
  throw new UsageError(`expected a time such as 30m, 2h or 2026-01-02T03:04Z, got "${text}"`);
}

/** Returns the record with the deadline of `--deadline` by the clock of Redis. Throws UsageError when the deadline has passed. */
export async function withDeadline(
  record: RunRecord,
  deadline: unknown,
  { clock }: Pick<Farm, 'clock'>,
): Promise<RunRecord> {
  if (deadline === undefined) return record;
  const now = await clock.ask();
  const span = spanMs(String(deadline));
  const at = span === null ? record.deadline_at : now + span;
  if (at !== null && at <= now) {
    throw new UsageError(
      `--deadline: "${deadline}" has passed: by the clock of Redis it is ${new Date(now).toISOString()}`,
    );
  }
  return { ...record, deadline_at: at };
}
