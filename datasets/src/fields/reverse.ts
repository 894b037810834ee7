/**
 * Returns a patch that undoes `diff`. SWE-smith publishes the patch that introduces a bug; the reverse of that patch is the gold patch.
 * Handles text patches with new, deleted and renamed files.
 */
export function reverseDiff(diff: string): string {
  if (diff === '') return '';
  const out: string[] = [];
  const lines = diff.split('\n');
  let removed: string[] = [];
  let added: string[] = [];
  let left = { before: 0, after: 0 };
  // git writes removals before additions, so swapped lines are buffered until their block ends.
  const flush = () => {
    out.push(...added, ...removed);
    removed = [];
    added = [];
  };
  let last = out;
  for (const line of lines) {
    const inHunk = left.before > 0 || left.after > 0;
    if (inHunk && line.startsWith('-')) {
      left = { ...left, before: left.before - 1 };
      removed.push(`+${line.slice(1)}`);
      last = removed;
    } else if (inHunk && line.startsWith('+')) {
      left = { ...left, after: left.after - 1 };
      added.push(`-${line.slice(1)}`);
      last = added;
    } else if (line.startsWith('\\')) {
      // "No newline at end of file" belongs to the line before it.
      last.push(line);
    } else {
      flush();
      last = out;
      const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/.exec(line);
      if (inHunk) left = { before: left.before - 1, after: left.after - 1 };
      else if (hunk) left = { before: Number(hunk[2] ?? 1), after: Number(hunk[4] ?? 1) };
      out.push(inHunk ? line : reverseHeader(line, hunk));
    }
  }
  flush();
  return swapFileNames(out).join('\n');
}

function reverseHeader(line: string, hunk: RegExpExecArray | null): string {
  if (hunk) {
    const range = (start = '', count?: string) => (count === undefined ? start : `${start},${count}`);
    return `@@ -${range(hunk[3], hunk[4])} +${range(hunk[1], hunk[2])} @@${hunk[5]}`;
  }
  const index = /^index ([0-9a-f]+)\.\.([0-9a-f]+)(.*)$/.exec(line);
  if (index) return `index ${index[2]}..${index[1]}${index[3]}`;
  for (const [from, to] of SWAPS) {
    if (line.startsWith(from)) return to + line.slice(from.length);
    if (line.startsWith(to)) return from + line.slice(to.length);
  }
  return line;
}

const SWAPS = [
  ['new file mode ', 'deleted file mode '],
  ['old mode ', 'new mode '],
  ['rename from ', 'rename to '],
] as const;

/**
 * Turns `--- a/x`, `+++ b/y` into `--- a/y`, `+++ b/x`. Also swaps the names in `diff --git` lines, and the order of mode and rename lines.
 */
function swapFileNames(lines: string[]): string[] {
  const out = [...lines];
  for (let at = 0; at + 1 < out.length; at++) {
    const first = out[at] ?? '';
    const second = out[at + 1] ?? '';
    if (first.startsWith('--- ') && second.startsWith('+++ ') && (out[at + 2] ?? '').startsWith('@@ ')) {
      out[at] = `--- ${rename(second.slice(4), 'b/', 'a/')}`;
      out[at + 1] = `+++ ${rename(first.slice(4), 'a/', 'b/')}`;
    } else if (
      (first.startsWith('rename to ') && second.startsWith('rename from ')) ||
      (first.startsWith('new mode ') && second.startsWith('old mode '))
    ) {
      out[at] = second;
      out[at + 1] = first;
    }
    const names = /^diff --git a\/(.+) b\/(.+)$/.exec(first);
    if (names && names[1] !== names[2]) out[at] = `diff --git a/${names[2]} b/${names[1]}`;
  }
  return out;
}

const rename = (name: string, from: string, to: string): string =>
  name.startsWith(from) ? to + name.slice(from.length) : name;
