/**
 * Reads the column `image_assets` of SWE-bench Multimodal, which contains addresses of pictures. The agent may see the pictures of the
 * issue, but not the pictures of the fix and the tests.
 */
import { MOST, type Picture } from '@swefarm/shared';
import { asObject, type FieldReader, isTextList, type Row } from '../fields/fields.ts';
import type { PictureSource } from './family.ts';

export type ShownIssue = { text: string; pictures: Picture[] };

/**
 * Returns the issue text followed by the addresses of its pictures, and the pictures, with their files if `source` has them. Refuses rows
 * whose evaluation needs pictures.
 */
export function withPictures(
  read: FieldReader,
  issue: string,
  source: PictureSource | undefined,
): ShownIssue {
  const given = read.row.image_assets ?? null;
  if (given === null || given === '') return { text: issue, pictures: [] };
  const assets = asObject(given);
  const shown = assets?.problem_statement ?? [];
  if (!assets || !isTextList(shown)) {
    const expected = 'an object of lists, or its JSON text';
    read.complain('image_assets', expected, given, 'export the column as it is');
    return { text: issue, pictures: [] };
  }
  refuseHarnessPictures(read, assets);
  if (shown.length === 0) return { text: issue, pictures: [] };
  if (shown.length > MOST.pictures) {
    const expected = `at most ${MOST.pictures} pictures`;
    const found = `${shown.length} of them`;
    read.complain('image_assets.problem_statement', expected, found, 'leave out the row');
  }
  return {
    text: `${issue}\n\nPictures of the issue:\n${shown.join('\n')}\n`,
    pictures: bounded(shown.map((address) => source?.find(address) ?? { address })),
  };
}

/**
 * Refuses rows whose evaluation needs pictures, because a text patch cannot contain them. swebench 4.1.0 downloads the pictures of the
 * tests during the evaluation. swebench 5.0.2 (rows with an eval_script) also adds the pictures of the fix (`_stage_image_assets`).
 */
function refuseHarnessPictures(read: FieldReader, assets: Row): void {
  const script = read.row.eval_script;
  const ofLatest = typeof script === 'string' && script !== '';
  const needs = (part: string): boolean => {
    const pictures = assets[part] ?? [];
    return !Array.isArray(pictures) || pictures.length > 0;
  };
  const refuse = (part: string, reason: string): void =>
    read.refuse(reason, `image_assets.${part}`, 'no pictures', assets[part]);
  if (needs('test_patch'))
    refuse('test_patch', 'the tests need pictures that their row names and does not contain');
  else if (ofLatest && needs('patch'))
    refuse('patch', 'the evaluation needs pictures of the fix that the row names and does not contain');
}

/** Drops the files of pictures beyond the byte limit of one issue, because every request of a rollout contains all pictures. */
function bounded(pictures: readonly Picture[]): Picture[] {
  let bytes = 0;
  return pictures.map((picture) => {
    bytes += picture.file?.bytes ?? 0;
    if (bytes <= MOST.issuePictureBytes) return picture;
    const problem = `the pictures up to this one have ${bytes} bytes; those of one issue have at most ${MOST.issuePictureBytes}`;
    return { address: picture.address, problem };
  });
}
