/** The files of a test patch. */
import { readDiff } from '@swefarm/grading';
import { quoted } from '../fields/bash.ts';
import type { FieldReader } from '../fields/fields.ts';

/** Those that were there before it, each as one word of bash. */
export function testPatchFiles(read: FieldReader, testPatch: string): string[] {
  try {
    return readDiff(testPatch)
      .filter(({ source }) => source.startsWith('a/'))
      .map(({ source }) => quoted(source.slice(2)));
  } catch (error) {
    read.complain('test_patch', 'a unified diff', testPatch, (error as Error).message);
    return [];
  }
}
