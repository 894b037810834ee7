/** The files of a test patch. */
import { readDiff } from '@swefarm/grading';
import { quoted } from '../fields/bash.ts';
import type { FieldReader } from '../fields/fields.ts';

/** Commands that undo what was done to these files: those that `base` has are as it has them, and those that the patch adds are gone. */
export function restoreCommands(read: FieldReader, testPatch: string, base: string): string[] {
  try {
    return readDiff(testPatch).flatMap(({ source, target }) => [
      ...(source.startsWith('a/') ? [`git checkout ${base} -- ${quoted(source.slice(2))}`] : []),
      ...(target.startsWith('b/') && target.slice(2) !== source.slice(2)
        ? [`rm -f -- ${quoted(target.slice(2))}`]
        : []),
    ]);
  } catch (error) {
    read.complain('test_patch', 'a unified diff', testPatch, (error as Error).message);
    return [];
  }
}
