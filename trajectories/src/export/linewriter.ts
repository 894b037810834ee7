/** The writer of formats with a line of JSON for each rollout. */
import type { ExportRequest, ExportWriter } from './format.ts';
import type { ExportedRollout } from './rollout.ts';
import { openTextFile } from './textfile.ts';

/** A line without its line feed, or why there is none. */
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
