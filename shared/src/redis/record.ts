/** Reads one stored record of a run or an instance by itself, so that a damaged or newer one does not stop work on the others. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { z } from 'zod';
import { errorMessage, SwefarmError } from '../failures/errors.ts';
import { Instance } from '../records/instance.ts';
import { RunRecord } from '../records/job.ts';
import { needsOf, UNDERSTOOD } from '../records/needs.ts';
import { type Read, readRecord } from '../records/parse.ts';

/** A run whose record this version cannot read, or must leave to a newer one. */
export type UnreadableRun = {
  run_id: string;
  /** It needs a newer version of the software; else its record is damaged or out of bounds. */
  newer: boolean;
  /** What is wrong, in a line. */
  problem: string;
};

const Anything = z.unknown();
const decompress = promisify(gunzip);

/** Never throws. */
export function readRun(run_id: string, text: string): { run: RunRecord } | { unreadable: UnreadableRun } {
  const raw = readRecord(Anything, text);
  const needs = 'value' in raw ? needsOf(raw.value) : UNDERSTOOD;
  if (needs > UNDERSTOOD) {
    return { unreadable: { run_id, newer: true, problem: tooNew(needs) } };
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

const tooNew = (needs: number): string =>
  `it needs workers that know of level ${needs}, and this version knows of ${UNDERSTOOD}`;

/** An instance as it was compressed. @throws SwefarmError `instance_newer` or `instance_unreadable` */
export async function requireInstance(runId: string, instanceId: string, blob: Buffer): Promise<Instance> {
  const refused = (code: 'instance_newer' | 'instance_unreadable', problem: string): SwefarmError =>
    new SwefarmError(code, `instance ${instanceId} of run ${runId} cannot be read: ${problem}`);
  const text = await decompress(blob).catch((error: unknown) => {
    throw refused('instance_unreadable', `no gzip: ${errorMessage(error)}`);
  });
  const raw = readRecord(Anything, text.toString('utf8'));
  const needs = 'value' in raw ? needsOf(raw.value) : UNDERSTOOD;
  if (needs > UNDERSTOOD) throw refused('instance_newer', tooNew(needs));
  const read: Read<Instance> = readRecord(Instance, text.toString('utf8'));
  if ('problem' in read) throw refused('instance_unreadable', read.problem);
  if (read.value.instance_id === instanceId) return read.value;
  const said = JSON.stringify(read.value.instance_id.slice(0, 40));
  throw refused('instance_unreadable', `instance_id: it says ${said}`);
}

const NOT_OURS: ReadonlySet<string> = new Set(['run_newer', 'run_unreadable', 'instance_newer']);

/** Whether an error says that a run or an instance is for another version of the software, perhaps. */
export const isNotOurs = (error: unknown): error is SwefarmError =>
  error instanceof SwefarmError && NOT_OURS.has(error.code);

/** Whether it says that an instance is damaged, for every version. */
export const isDamagedInstance = (error: unknown): error is SwefarmError =>
  error instanceof SwefarmError && error.code === 'instance_unreadable';

/** One line for people, with what to do about it. */
export const describeUnreadableRun = ({ run_id, newer, problem }: UnreadableRun): string =>
  newer
    ? `run ${run_id} is left to a newer version of swefarm: ${problem}`
    : `run ${run_id} cannot be read: ${problem}; swefarm remove ${run_id} --unfinished takes it away`;
