/** Checks what the check of the built pages finds: links to no page and to no heading. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadLinks } from './anchors.ts';

test.each(['/', '/0.1.0/'])('dead links are found below %s, and only these', async (base) => {
  const folder = await mkdtemp(join(tmpdir(), 'site-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'docs'));
  const page = (...links: string[]) =>
    `<h2 id="here">Here</h2>${links.map((href) => `<a href="${href}">x</a>`).join('')}`;
  await writeFile(
    join(folder, 'index.html'),
    page(`${base}docs/one.html#here`, '#here', 'https://example.org/#x'),
  );
  await writeFile(
    join(folder, 'docs/one.html'),
    page(base, `${base}#gone`, `${base}docs/two.html`, `${base}assets/style.css`, '#nowhere', '/elsewhere/'),
  );
  expect(deadLinks(folder, base)).toEqual([
    `docs/one.html: ${base}#gone leads to no heading`,
    `docs/one.html: ${base}docs/two.html leads to no page`,
    'docs/one.html: #nowhere leads to no heading',
    'docs/one.html: /elsewhere/ leads to no page',
  ]);
});
