/** One run record as it lies in Redis: read by itself, so that none that is damaged or newer stops what is done for the others. */
import { z } from 'zod';
import { SwefarmError } from '../errors.ts';
import { RunRecord } from '../job.ts';
import { needsOf, UNDERSTOOD } from '../needs.ts';
import { type Read, readRecord } from '../parse.ts';

/** A run whose record this version cannot read, or must leave to a newer one. */
export type UnreadableRun = {
  run_id: string;
  /** It needs a newer version of the software; else its record is damaged or out of bounds. */
  newer: boolean;
  /** What is wrong, in a line. */
  problem: string;
};

const Anything = z.unknown();

/** Never throws. */
export function readRun(run_id: string, text: string): { run: RunRecord } | { unreadable: UnreadableRun } {
  const raw = readRecord(Anything, text);
  const needs = 'value' in raw ? needsOf(raw.value) : 0;
  if (needs > UNDERSTOOD) {
    const problem = `it needs workers that know of level ${needs}, and this version knows of ${UNDERSTOOD}`;
    return { unreadable: { run_id, newer: true, problem } };
  }
  const read: Read<RunRecord> = readRecord(RunRecord, text);
  if ('value' in read) {
    if (read.value.run_id === run_id) return { run: read.value };
    const problem = `run_id: it says ${JSON.stringify(read.value.run_id.slice(0, 40))}`;
    return { unreadable: { run_id, newer: false, problem } };
  }
  return { unreadable: { run_id, newer: false, problem: read.problem } };
}

/** @throws SwefarmError `run_newer` or `run_unreadable` */
export function requireRun(runId: string, text: string): RunRecord {
  const read = readRun(runId, text);
  if ('run' in read) return read.run;
  const { newer, problem } = read.unreadable;
  throw new SwefarmError(
    newer ? 'run_newer' : 'run_unreadable',
    describeUnreadableRun({ run_id: runId, newer, problem }),
  );
}

/** Whether an error says that a run was left alone as {@link requireRun} does. */
export const isNotOurs = (error: unknown): error is SwefarmError =>
  error instanceof SwefarmError && (error.code === 'run_newer' || error.code === 'run_unreadable');

/** One line for people, with what to do about it. */
export const describeUnreadableRun = ({ run_id, newer, problem }: UnreadableRun): string =>
  newer
    ? `run ${run_id} is left to a newer version of swefarm: ${problem}`
    : `run ${run_id} cannot be read: ${problem}; swefarm remove ${run_id} --unfinished takes it away`;
