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

/** Returns milliseconds since the epoch for the `deadline_at` of a file: this number, or a text as of `--deadline`. Throws UsageError. */
export function deadlineInFile(given: unknown): unknown {
  if (typeof given !== 'string') return given;
  try {
    return parseDeadline(given);
  } catch (error) {
    throw new UsageError(`deadline_at: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Returns the record with its deadline by the clock of Redis. `given`: the text of `--deadline`, or the value of `deadline_at` in a file.
 *
 * @throws UsageError if the deadline has passed
 */
export async function withDeadline(
  record: RunRecord,
  given: unknown,
  { clock }: Pick<Farm, 'clock'>,
): Promise<RunRecord> {
  if (record.deadline_at === null) return record;
  const now = await clock.ask();
  const span = typeof given === 'string' ? spanMs(given) : null;
  const at = span === null ? record.deadline_at : now + span;
  if (at <= now) {
    const form =
      typeof given === 'string' ? '' : ' (a number is milliseconds since the epoch; a span is a text)';
    throw new UsageError(
      `--deadline: "${given ?? at}" has passed: by the clock of Redis it is ${new Date(now).toISOString()}${form}`,
    );
  }
  return { ...record, deadline_at: at };
}
