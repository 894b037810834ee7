/** Writes the formats that have one line of JSON for each rollout. */
import type { ExportRequest, ExportWriter } from './format.ts';
import type { ExportedRollout } from './rollout.ts';
import { openTextFile } from './textfile.ts';

export type Rendered = { line: string } | { skipped: string };

export async function openLineWriter(
  { path }: ExportRequest,
  render: (rollout: ExportedRollout) => Rendered,
): Promise<ExportWriter> {
  const file = await openTextFile(path);
  return {
    async write(rollout) {
      const rendered = render(rollout);
      if ('skipped' in rendered) return rendered.skipped;
      await file.write(`${rendered.line}\n`);
      return null;
    },
    finish: () => file.finish(),
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  };
}
