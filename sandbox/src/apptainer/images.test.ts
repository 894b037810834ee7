import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, it } from 'vitest';
import { findSif, SifImages } from './images.ts';
import { inspectSifFiles } from './inspect.ts';
import { writeOrigin } from './origin.ts';
import { candidatePaths } from './sifpaths.ts';

const ONE = 'jefzda/sweap-images:ansible.ansible-1';
const TWO = 'jefzda/sweap-images:flipt-io.flipt-2';

async function converted(path: string, image: string): Promise<void> {
  writeFileSync(path, image);
  await writeOrigin(path, { image, sha256: 'x', bytes: image.length, converted_at: 'x' });
}
const pathOf = async (templates: string[], image: string) =>
  (await findSif(templates, image, undefined)).existing?.path;

it('conversions of images that differ only in the tag have paths of their own', () => {
  const paths = [ONE, TWO].map((image) => candidatePaths(['/s/{image}.sif'], image, undefined)[0]);
  expect(paths).toEqual(['/s/sweap-images_ansible.ansible-1.sif', '/s/sweap-images_flipt-io.flipt-2.sif']);
});

it('a file that was made of another image is not used, unless its path is named', async () => {
  const folder = temporaryFolder('sif');
  const templates = [join(folder, '{image}.sif')];
  const file = join(folder, 'sweap-images.sif');
  await converted(file, ONE);
  expect(await pathOf(templates, ONE)).toBe(file);
  expect(await pathOf(templates, `docker.io/${ONE}`)).toBe(file);
  expect(await pathOf(templates, `sif:${file}`)).toBe(file);
  const deps = { templates, store: {} as never, command: [], mountable: true };
  await expect(
    new SifImages(deps).ensure(TWO, 'flipt-2', new AbortController().signal),
  ).rejects.toMatchObject({
    failureClass: 'image_not_found',
    message: expect.stringContaining(`${file} was made of ${ONE}`),
  });
  expect(await inspectSifFiles(templates).look(TWO, false, [])).toMatchObject({
    status: 'changed',
    path: file,
  });
  const own = join(folder, 'sweap-images_flipt-io.flipt-2.sif');
  await converted(own, TWO);
  expect(await pathOf(templates, TWO)).toBe(own);
});

it('a file without a record is used for each tag', async () => {
  const folder = temporaryFolder('sif');
  const file = join(folder, 'sweap-images.sif');
  writeFileSync(file, 'x');
  for (const image of [ONE, TWO]) expect(await pathOf([join(folder, '{image}.sif')], image)).toBe(file);
});
