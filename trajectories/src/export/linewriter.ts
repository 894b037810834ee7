/** Writes the formats that have one line of JSON for each rollout. */
import { jsonText } from '@swefarm/shared';
import type { ExportRequest, ExportWriter } from './format.ts';
import type { ExportedRollout } from './rollout.ts';
import { openTextFile } from './textfile.ts';

export async function openLineWriter(
  { path }: ExportRequest,
  rowOf: (rollout: ExportedRollout) => object,
): Promise<ExportWriter> {
  const file = await openTextFile(path);
  return { ...file, write: (rollout) => file.write(`${jsonText(rowOf(rollout))}\n`) };
}
