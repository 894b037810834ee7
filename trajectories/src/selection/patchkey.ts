/** Compares patches by changed lines with indentation, without line numbers, context, blank lines and repeated blanks. */
import { createHash } from 'node:crypto';

/** Returns a hash that is equal for patches with the same changed lines in the same files; an empty text for a patch without changes. */
export function patchKey(patch: string): string {
  const files: string[] = [];
  for (const section of patch.split(/^(?=diff --git )/m)) {
    const changed = section.split('\n').flatMap(changedLine);
    if (changed.length > 0) files.push(changed.join('\n'));
  }
  if (files.length === 0) return '';
  return createHash('sha256').update(files.sort().join('\n\0')).digest('base64url');
}

/** Returns a line that names a file or a changed line with text; an empty list for other lines. */
function changedLine(line: string): string[] {
  if (/^(\+\+\+|---) /.test(line)) return [line.replace(/\t.*$/, '').trimEnd()];
  if (/^(new file|deleted file|old mode|new mode|rename|copy|Binary)/.test(line)) return [line.trimEnd()];
  if (!/^[+-]/.test(line)) return [];
  const text = line.slice(1).trimEnd();
  return text === '' ? [] : [`${line[0]}${text.replace(/(?<=\S)\s+/g, ' ')}`];
}
