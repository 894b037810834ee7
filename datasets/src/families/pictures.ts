/**
 * The column `image_assets` of SWE-bench Multimodal: addresses of the pictures of the issue, which the agent may know, and of those that
 * belong to the fix and to its tests, which it may not.
 */
import { MOST, type Picture } from '@swefarm/shared';
import { asObject, type FieldReader, isTextList, type Row } from '../fields/fields.ts';
import type { PictureSource } from './family.ts';

export type ShownIssue = { text: string; pictures: Picture[] };

/**
 * The issue, with the addresses of its pictures below, and the pictures themselves where `source` has them. Rows whose evaluation
 * needs pictures that nobody brings are refused.
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
    read.complain(
      'image_assets',
      'an object of lists, or its JSON text',
      given,
      'export the column as it is',
    );
    return { text: issue, pictures: [] };
  }
  refuseHarnessPictures(read, assets);
  if (shown.length === 0) return { text: issue, pictures: [] };
  if (shown.length > MOST.pictures)
    read.complain(
      'image_assets.problem_statement',
      `at most ${MOST.pictures} pictures`,
      `${shown.length} of them`,
      'leave out the row',
    );
  return {
    text: `${issue}\n\nPictures of the issue:\n${shown.join('\n')}\n`,
    pictures: bounded(shown.map((address) => source?.find(address) ?? { address })),
  };
}

/**
 * A text patch cannot carry the pictures that tests compare with. swebench 4.1.0 fetches those of the tests while it evaluates; 5.0.2, whose
 * rows have an eval_script, puts those of the fix into the tree too, whatever patch it evaluates (`_stage_image_assets`).
 */
function refuseHarnessPictures(read: FieldReader, assets: Row): void {
  const script = read.row.eval_script;
  const ofLatest = typeof script === 'string' && script !== '';
  for (const [part, reason] of [
    ['test_patch', 'the tests need pictures that their row names and does not hold'],
    ...(ofLatest
      ? [['patch', 'the evaluation needs pictures of the fix that the row names and does not hold'] as const]
      : []),
  ] as const) {
    const pictures = assets[part] ?? [];
    if (Array.isArray(pictures) && pictures.length === 0) continue;
    read.refuse(reason, `image_assets.${part}`, 'no pictures', pictures, 'leave out the row');
    return;
  }
}

/** The pictures of one issue go into every request of its rollouts. */
function bounded(pictures: readonly Picture[]): Picture[] {
  let bytes = 0;
  return pictures.map((picture) => {
    bytes += picture.file?.bytes ?? 0;
    if (bytes <= MOST.issuePictureBytes) return picture;
    const problem = `the pictures up to this one have ${bytes} bytes; those of one issue have at most ${MOST.issuePictureBytes}`;
    return { address: picture.address, problem };
  });
}
