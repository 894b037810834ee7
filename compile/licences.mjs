// Collects the licences of the packages that compiled files contain.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './pieces.mjs';

const PACKAGE = /^(?:.*node_modules\/)(?:@[^/]+\/)?[^/]+(?=\/)/;
const FILE = /^(licen[cs]e|copying|notice)/i;

/**
 * Returns the name, version and licence text of each package that contains one of these files (paths relative to the root). A package
 * without a licence file is listed with the licence of its package.json.
 * @throws Error if a package names no licence
 */
export async function thirdPartyLicences(files) {
  const folders = new Set(files.flatMap((file) => PACKAGE.exec(file) ?? []));
  const parts = new Map();
  for (const folder of folders) {
    const { name, version, license } = JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8'));
    const names = (await readdir(join(ROOT, folder))).filter((one) => FILE.test(one)).sort();
    const texts = await Promise.all(names.map((one) => readFile(join(ROOT, folder, one), 'utf8')));
    if (license === undefined && texts.length === 0) throw new Error(`${folder}/package.json: no licence`);
    const title = `${name} ${version} (${license ?? 'see below'})`;
    parts.set(title, [title, ...texts.map((text) => text.trim())].join('\n\n'));
  }
  return `${[...parts.keys()]
    .sort()
    .map((title) => parts.get(title))
    .join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}
