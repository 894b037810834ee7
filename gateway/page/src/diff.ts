/** A unified diff as files and lines, for showing only: whatever is no diff stays as plain lines. */

export type DiffLine = { kind: 'added' | 'removed' | 'hunk' | 'same' | 'meta'; text: string };
export type DiffFile = { path: string; lines: DiffLine[]; added: number; removed: number };

export function parseDiff(patch: string): DiffFile[] {
  const files: DiffFile[] = [];
  let file: DiffFile | null = null;
  let left = 0;
  let right = 0;
  const lines = patch.replace(/\n$/, '').split('\n');
  for (const [at, text] of lines.entries()) {
    const begins = /^(?:diff --git |@@ -)/.test(text);
    // A model may count the lines of its patch wrongly: a line that no hunk can have ends the hunk.
    const inHunk = (left > 0 || right > 0) && !begins;
    if (begins) left = right = 0;
    if (!inHunk && beginsFile(text, lines[at + 1], file)) {
      file = { path: pathOf(text, lines, at), lines: [], added: 0, removed: 0 };
      files.push(file);
    }
    file ??= add(files, '');
    const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(text);
    if (!inHunk && hunk) {
      left = Number(hunk[1] ?? 1);
      right = Number(hunk[2] ?? 1);
      file.lines.push({ kind: 'hunk', text });
    } else if (inHunk && text.startsWith('+')) {
      right -= 1;
      file.added += 1;
      file.lines.push({ kind: 'added', text });
    } else if (inHunk && text.startsWith('-')) {
      left -= 1;
      file.removed += 1;
      file.lines.push({ kind: 'removed', text });
    } else if (inHunk && (text === '' || text.startsWith(' '))) {
      left -= 1;
      right -= 1;
      file.lines.push({ kind: 'same', text });
    } else file.lines.push({ kind: 'meta', text });
  }
  return files;
}

function add(files: DiffFile[], path: string): DiffFile {
  const file: DiffFile = { path, lines: [], added: 0, removed: 0 };
  files.push(file);
  return file;
}

/** `diff --git` begins a file; without it, `---` followed by `+++` does. */
function beginsFile(text: string, next: string | undefined, file: DiffFile | null): boolean {
  if (text.startsWith('diff --git ')) return true;
  const bare = text.startsWith('--- ') && next?.startsWith('+++ ') === true;
  return (
    bare &&
    !(file?.lines[0]?.text.startsWith('diff --git ') && file.lines.every((one) => one.kind === 'meta'))
  );
}

function pathOf(text: string, lines: readonly string[], at: number): string {
  const git = /^diff --git a\/(.+) b\/(.+)$/.exec(text)?.[2];
  const plus = /^\+\+\+ (?:b\/)?([^\t]+)/.exec(lines[at + 1] ?? '')?.[1];
  return git ?? plus ?? text.replace(/^diff --git /, '');
}

/** Files of both patches, those that both touch first. */
export function pairFiles(
  own: readonly DiffFile[],
  gold: readonly DiffFile[],
): { path: string; own: DiffFile | null; gold: DiffFile | null }[] {
  const find = (files: readonly DiffFile[], path: string) => files.find((file) => file.path === path) ?? null;
  const paths = [...new Set([...own, ...gold].map((file) => file.path))];
  return paths
    .map((path) => ({ path, own: find(own, path), gold: find(gold, path) }))
    .sort((a, b) => Number(b.own !== null && b.gold !== null) - Number(a.own !== null && a.gold !== null));
}
