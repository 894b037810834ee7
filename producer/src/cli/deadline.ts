/** The deadline of a new run, by the clock of Redis: the farm goes by that one, and ours may be a day off. */
import { type Farm, type RunRecord, UsageError } from '@swefarm/shared';
import { spanMs } from '../run/flags.ts';
import type { Flags } from './options.ts';

/** The record with the deadline that `--deadline` means. Throws UsageError for one that is over already. */
export async function timed(
  record: RunRecord,
  flags: Flags,
  { clock }: Pick<Farm, 'clock'>,
): Promise<RunRecord> {
  if (flags.deadline === undefined) return record;
  const given = String(flags.deadline);
  const now = await clock.ask();
  const span = spanMs(given);
  const at = span === null ? record.deadline_at : now + span;
  if (at !== null && at <= now) {
    const said = new Date(now).toISOString();
    throw new UsageError(`--deadline: "${given}" is over already: by the clock of Redis it is ${said}`);
  }
  return { ...record, deadline_at: at };
}
