/** Finds passages that occur twice in the sources. */
import type { TreeFile } from './tree.ts';

/** Minimum number of lines of a passage, without blank lines, imports and lines of brackets. */
export const PASSAGE_LINES = 6;

type Line = { path: string; number: number; text: string };

/** Returns each pair of passages once, the longest first. `at`: both places as `path:line`. */
export function repeatedPassages(files: readonly TreeFile[]): { at: string[]; lines: number }[] {
  const all = files.map(linesOf);
  const seen = new Map<string, { file: number; at: number }>();
  const covered = new Set<string>();
  const found: { at: string[]; lines: number }[] = [];
  all.forEach((lines, file) => {
    for (let at = 0; at + PASSAGE_LINES <= lines.length; at++) {
      const key = lines
        .slice(at, at + PASSAGE_LINES)
        .map(({ text }) => text)
        .join('\n');
      const first = seen.get(key);
      if (!first) seen.set(key, { file, at });
      else if (!covered.has(`${file}:${at}`) && (first.file !== file || at - first.at >= PASSAGE_LINES)) {
        const length = sameFrom(all[first.file] ?? [], first.at, lines, at);
        for (let i = 0; i < length; i++) covered.add(`${file}:${at + i}`);
        const locations = [all[first.file]?.[first.at], lines[at]].map(
          (line) => `${line?.path}:${line?.number}`,
        );
        found.push({ at: locations, lines: length });
      }
    }
  });
  return found.toSorted((a, b) => b.lines - a.lines);
}

function linesOf({ path, text }: TreeFile): Line[] {
  return text
    .replace(/^(import|export)\s[^;]*?from\s*['"][^'"]+['"];/gm, (all) => all.replace(/[^\n]/g, ''))
    .split('\n')
    .map((line, at) => ({ path, number: at + 1, text: line.trim() }))
    .filter(({ text: line }) => /\w/.test(line));
}

function sameFrom(one: readonly Line[], from: number, other: readonly Line[], at: number): number {
  let length = 0;
  while (one[from + length] && one[from + length]?.text === other[at + length]?.text) length++;
  return length;
}
