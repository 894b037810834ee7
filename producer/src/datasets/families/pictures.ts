/**
 * The column `image_assets` of SWE-bench Multimodal: addresses of the pictures of the issue, which the agent may know, and of those that
 * belong to the fix and to its tests, which it may not.
 */
import { asObject, type FieldReader, isTextList } from '../fields/fields.ts';

/** The issue, with the addresses of its pictures below. Rows whose tests need pictures that nobody brings are refused. */
export function withPictures(read: FieldReader, issue: string): string {
  const given = read.row.image_assets ?? null;
  if (given === null || given === '') return issue;
  const assets = asObject(given);
  const shown = assets?.problem_statement ?? [];
  if (!assets || !isTextList(shown)) {
    read.complain(
      'image_assets',
      'an object of lists, or its JSON text',
      given,
      'export the column as it is',
    );
    return issue;
  }
  const ofTests = assets.test_patch ?? [];
  if (!Array.isArray(ofTests) || ofTests.length > 0) {
    read.refuse(
      'the tests need pictures that their row names and does not hold',
      'image_assets.test_patch',
      'no pictures',
      ofTests,
      'leave out the row',
    );
  }
  return shown.length === 0 ? issue : `${issue}\n\nPictures of the issue:\n${shown.join('\n')}\n`;
}
