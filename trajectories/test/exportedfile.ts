/** Exports a rollout to a file in a temporary folder, and reads its rows. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArtifactContent, Result } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import type { LineChoice } from '../src/export/lines.ts';
import { exportedRollout } from '../src/export/rollout.ts';
import { EXPORT_FORMATS } from '../src/formats/registry.ts';
import { outputLine } from '../src/output/line.ts';
import { BRANCHED, trajectoryOfLines } from './lines.ts';

const trajectory = trajectoryOfLines(BRANCHED);
const content = { trajectory, patch: 'p', report: null, test_log: null } as unknown as ArtifactContent;

/** Exports a rollout with several lines. Returns the path of the export. */
export async function exportedFile(
  format: string,
  result: Result,
  choices: { lines: LineChoice; maskOverlong?: boolean },
): Promise<string> {
  const known = EXPORT_FORMATS[format];
  if (!known) throw new Error(`no format ${format}`);
  const line = outputLine(result, { patch: 'p', report: null });
  const rollout = exportedRollout({ line, content, sample: 0, instance: null, model: null, exportedBy: 'x' });
  const path = join(temporaryFolder('exported'), 'out');
  await using writer = await known.open({
    ...{ path, form: known.forms[0] ?? '', samples: 1, fingerprint: 'x' },
    ...choices,
  });
  await writer.write(rollout);
  await writer.finish();
  return path;
}

export const rowsIn = async (path: string) =>
  (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((text) => JSON.parse(text));
