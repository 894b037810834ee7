/** Reads stored records of runs and instances. A record that is damaged or of a newer version does not affect other records. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { z } from 'zod';
import { errorMessage, SwefarmError } from '../failures/errors.ts';
import { Instance } from '../records/instance.ts';
import { RunRecord } from '../records/job.ts';
import { needsOf, UNDERSTOOD } from '../records/needs.ts';
import { readRecord } from '../records/parse.ts';

/** A run with an unreadable record. `newer`: the record needs a newer version; otherwise it is damaged or out of bounds. */
export const UnreadableRun = z.object({ run_id: z.string(), newer: z.boolean(), problem: z.string() });
export type UnreadableRun = z.infer<typeof UnreadableRun>;

const Anything = z.unknown();
const decompress = promisify(gunzip);

/** Parses a record. A record whose level this version does not understand is not parsed. */
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

function readRun(run_id: string, text: string): { value: RunRecord } | UnreadableRun {
  const read = readLevelled<RunRecord>(RunRecord, text);
  if (!('value' in read)) return { run_id, ...read };
  if (read.value.run_id === run_id) return read;
  return { run_id, newer: false, problem: `run_id: found ${JSON.stringify(read.value.run_id.slice(0, 40))}` };
}

/** Parses the records of these runs; missing records (null) are omitted. */
export function readRuns(
  runIds: readonly string[],
  texts: readonly (string | null)[],
): { runs: RunRecord[]; unreadable: UnreadableRun[] } {
  const read = runIds.flatMap((id, at) => (texts[at] ? [readRun(id, texts[at])] : []));
  return {
    runs: read.flatMap((one) => ('value' in one ? [one.value] : [])),
    unreadable: read.flatMap((one) => ('value' in one ? [] : [one])),
  };
}

/** Parses the record of a run. @throws SwefarmError `run_newer` or `run_unreadable` */
export function requireRun(runId: string, text: string): RunRecord {
  const read = readRun(runId, text);
  if ('value' in read) return read.value;
  throw new SwefarmError(read.newer ? 'run_newer' : 'run_unreadable', describeUnreadableRun(read));
}

/** Parses the compressed record of an instance. @throws SwefarmError `instance_newer` or `instance_unreadable` */
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

/** Returns whether the error means that another version may be able to read the run or instance. */
export const isNotOurs = (error: unknown): error is SwefarmError =>
  error instanceof SwefarmError && NOT_OURS.has(error.code);

/** Returns whether the error means that an instance is damaged, so that no version can read it. */
export const isDamagedInstance = (error: unknown): error is SwefarmError =>
  error instanceof SwefarmError && error.code === 'instance_unreadable';

export const describeUnreadableRun = ({ run_id, newer, problem }: UnreadableRun): string =>
  newer
    ? `run ${run_id} needs a newer version of swefarm: ${problem}`
    : `run ${run_id} is unreadable: ${problem}; swefarm remove ${run_id} --unfinished removes it`;
