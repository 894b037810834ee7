/** Reads stored records of runs and instances; a damaged or newer one does not affect others. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { z } from 'zod';
import { errorMessage, SwefarmError } from '../failures/errors.ts';
import { Instance } from '../records/instance.ts';
import { RunRecord } from '../records/job.ts';
import { needsOf, UNDERSTOOD } from '../records/needs.ts';
import { readRecord } from '../records/parse.ts';

/** A run with an unreadable record. `newer`: it needs a newer version; else it is damaged or out of bounds. */
export const UnreadableRun = z.object({ run_id: z.string(), newer: z.boolean(), problem: z.string() });
export type UnreadableRun = z.infer<typeof UnreadableRun>;

const Anything = z.unknown();
const decompress = promisify(gunzip);

/** Parses a record of a level that this version understands. */
function readLevelled<T>(schema: z.ZodType<T>, text: string): { value: T } | Omit<UnreadableRun, 'run_id'> {
  const raw = readRecord(Anything, text);
  const needs = 'value' in raw ? needsOf(raw.value) : UNDERSTOOD;
  if (needs > UNDERSTOOD) {
    const problem = `it needs level ${needs}, and this version understands level ${UNDERSTOOD}`;
    return { newer: true, problem };
  }
  const read = readRecord(schema, text);
  return 'value' in read ? read : { newer: false, problem: read.problem };
}

export function readRun(run_id: string, text: string): { run: RunRecord } | { unreadable: UnreadableRun } {
  const read = readLevelled<RunRecord>(RunRecord, text);
  if (!('value' in read)) return { unreadable: { run_id, ...read } };
  if (read.value.run_id === run_id) return { run: read.value };
  const problem = `run_id: found ${JSON.stringify(read.value.run_id.slice(0, 40))}`;
  return { unreadable: { run_id, newer: false, problem } };
}

/** @throws SwefarmError `run_newer` or `run_unreadable` */
export function requireRun(runId: string, text: string): RunRecord {
  const read = readRun(runId, text);
  if ('run' in read) return read.run;
  const code = read.unreadable.newer ? 'run_newer' : 'run_unreadable';
  throw new SwefarmError(code, describeUnreadableRun(read.unreadable));
}

/** @throws SwefarmError `instance_newer` or `instance_unreadable` */
export async function requireInstance(runId: string, instanceId: string, blob: Buffer): Promise<Instance> {
  const refused = (code: 'instance_newer' | 'instance_unreadable', problem: string): SwefarmError =>
    new SwefarmError(code, `instance ${instanceId} of run ${runId} is unreadable: ${problem}`);
  const text = await decompress(blob).catch((error: unknown) => {
    throw refused('instance_unreadable', `invalid gzip: ${errorMessage(error)}`);
  });
  const read = readLevelled<Instance>(Instance, text.toString('utf8'));
  if ('problem' in read) throw refused(read.newer ? 'instance_newer' : 'instance_unreadable', read.problem);
  if (read.value.instance_id === instanceId) return read.value;
  const found = JSON.stringify(read.value.instance_id.slice(0, 40));
  throw refused('instance_unreadable', `instance_id: found ${found}`);
}

const NOT_OURS: ReadonlySet<string> = new Set(['run_newer', 'run_unreadable', 'instance_newer']);

/** Returns whether a run or an instance may be readable by another version. */
export const isNotOurs = (error: unknown): error is SwefarmError =>
  error instanceof SwefarmError && NOT_OURS.has(error.code);

/** Returns whether an instance is damaged for every version. */
export const isDamagedInstance = (error: unknown): error is SwefarmError =>
  error instanceof SwefarmError && error.code === 'instance_unreadable';

export const describeUnreadableRun = ({ run_id, newer, problem }: UnreadableRun): string =>
  newer
    ? `run ${run_id} needs a newer version of swefarm: ${problem}`
    : `run ${run_id} is unreadable: ${problem}; swefarm remove ${run_id} --unfinished removes it`;
