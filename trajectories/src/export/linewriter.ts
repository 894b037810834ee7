/** Writes the formats that have a line of JSON for each rollout, or for each line of its agent. */
import { jsonText } from '@swefarm/shared';
import type { ExportRequest, ExportWriter } from './format.ts';
import type { ExportedRollout } from './rollout.ts';
import { openTextFile } from './textfile.ts';

export async function openLineWriter(
  { path }: ExportRequest,
  rowsOf: (rollout: ExportedRollout) => object | readonly object[],
): Promise<ExportWriter> {
  const file = await openTextFile(path);
  const write = (rollout: ExportedRollout): Promise<void> =>
    file.write(
      [rowsOf(rollout)]
        .flat()
        .map((row) => `${jsonText(row)}\n`)
        .join(''),
    );
  return { ...file, write };
}
