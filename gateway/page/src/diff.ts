/** Splits a patch into files and lines for display. Every line is in a file, even if the text is no diff. */

export type DiffLine = { kind: 'added' | 'removed' | 'hunk' | 'same' | 'meta'; text: string };
export type DiffFile = { path: string; lines: DiffLine[]; added: number; removed: number };

const KINDS: Record<string, DiffLine['kind']> = {
  '+': 'added',
  '-': 'removed',
  ' ': 'same',
  '': 'same',
  '@': 'hunk',
};

/** Returns the files of a patch. A file begins with `diff --git`, or with `---` before `+++` in a patch without `diff --git`. */
export function parseDiff(patch: string): DiffFile[] {
  const begin = /^diff --git /m.test(patch) ? /^(?=diff --git )/m : /^(?=--- .*\n\+\+\+ )/m;
  return patch
    .replace(/\n$/, '')
    .split(begin)
    .map((text) => {
      const [head = '', ...hunks] = text.split(/^(?=@@ -)/m);
      const [, path] =
        /^diff --git a\/.+ b\/(.+)$/m.exec(head) ?? /^\+\+\+ (?:b\/)?([^\t\n]+)/m.exec(head) ?? [];
      const linesOf = (part: string): string[] => part.replace(/\n$/, '').split('\n');
      const lines = [
        ...(head === '' ? [] : linesOf(head)).map((text): DiffLine => ({ kind: 'meta', text })),
        ...hunks
          .flatMap(linesOf)
          .map((text): DiffLine => ({ kind: KINDS[text.slice(0, 1)] ?? 'meta', text })),
      ];
      const count = (kind: DiffLine['kind']): number => lines.filter((line) => line.kind === kind).length;
      return { path: path ?? '', lines, added: count('added'), removed: count('removed') };
    });
}

/** Pairs the files of two patches by path. Files that are in both patches come first. */
export function pairFiles(
  own: readonly DiffFile[],
  other: readonly DiffFile[],
): [string, DiffFile | undefined, DiffFile | undefined][] {
  const find = (files: readonly DiffFile[], path: string) => files.find((file) => file.path === path);
  const isIn = (path: string): number => Number(Boolean(find(own, path) && find(other, path)));
  return [...new Set([...own, ...other].map(({ path }) => path))]
    .sort((a, b) => isIn(b) - isIn(a))
    .map((path) => [path, find(own, path), find(other, path)]);
}
