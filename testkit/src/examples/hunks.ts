/** Selects hunks of a difference: a release often fixes more than the one bug of an example. */
import { SwefarmError } from '@swefarm/shared';

type Hunk = { start: number; removed: string[]; added: string[] };

/** `diff` covers one file, with -U0. Returns `before` with the selected hunks applied; throws `example_recipe` when none is selected. */
export function selectHunks(
  before: string,
  diff: string,
  choice: { file: string; only_hunks: readonly string[]; skip_hunks: readonly string[] },
): string {
  const matches = (hunk: Hunk, texts: readonly string[]) =>
    texts.some((text) => [...hunk.removed, ...hunk.added].some((line) => line.includes(text)));
  const all = parseHunks(diff, choice.file);
  for (const text of [...choice.only_hunks, ...choice.skip_hunks]) {
    if (!all.some((hunk) => matches(hunk, [text]))) {
      throw new SwefarmError('example_recipe', `${choice.file}: no hunk changes a line with "${text}"`);
    }
  }
  const chosen = all.filter(
    (hunk) =>
      (choice.only_hunks.length === 0 || matches(hunk, choice.only_hunks)) &&
      !matches(hunk, choice.skip_hunks),
  );
  if (chosen.length === 0) throw new SwefarmError('example_recipe', `${choice.file}: no hunk is left`);
  const lines = before.split('\n');
  // From the end, so that earlier line numbers stay valid. A hunk that only adds lines gives the line before it.
  for (const hunk of chosen.reverse()) {
    const at = hunk.removed.length === 0 ? hunk.start : hunk.start - 1;
    lines.splice(at, hunk.removed.length, ...hunk.added);
  }
  return lines.join('\n');
}

function parseHunks(diff: string, file: string): Hunk[] {
  const hunks: Hunk[] = [];
  for (const line of diff.split('\n')) {
    const header = /^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@/.exec(line);
    const hunk = hunks.at(-1);
    if (header !== null) hunks.push({ start: Number(header[1]), removed: [], added: [] });
    else if (hunk === undefined) continue;
    else if (line.startsWith('-')) hunk.removed.push(line.slice(1));
    else if (line.startsWith('+')) hunk.added.push(line.slice(1));
    else if (line.startsWith('\\')) {
      throw new SwefarmError('example_recipe', `${file} ends without a newline: its hunks cannot be chosen`);
    }
  }
  return hunks;
}
