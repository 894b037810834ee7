// Builds the artefacts of a release, each in its own folder below `out`.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, link, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { billOfMaterials } from '../compile/origin.mjs';
import { packPackages } from './packages.mjs';
import { engine, Failure, show } from './run.mjs';

/**
 * Builds all artefacts. Returns what was left out, with the reason. Throws Failure.
 * @param out folder of the release
 * @param origin see {@link originOf}
 * @param base base image of the images; null: the default
 */
export async function buildArtefacts(out, { origin, notes, base }) {
  const { version, seconds, revision } = origin;
  const draft = join(out, 'draft');
  const env = { SOURCE_DATE_EPOCH: String(seconds) };
  await packPackages(join(out, 'npm'), { draft, revision });
  await show('bash', ['producer/python/build.sh', join(out, 'python')], { env });
  await mkdir(join(out, 'chart'), { recursive: true });
  await archive(join(out, 'chart', `swefarm-${version}.tgz`), { from: 'helm', names: ['swefarm'], seconds });
  const bundle = join(draft, `swefarm-${version}`);
  await show(process.execPath, ['slurm/bundle.mjs', '--out', bundle]);
  await access(join(bundle, 'bin/valkey-server')).catch(() => {
    throw new Failure(
      'the bundle lacks bin/valkey-server, which Compose and SLURM start; its reason is above',
    );
  });
  const name = `swefarm-${version}-linux-${process.arch}.tar.gz`;
  await archive(join(out, name), { from: draft, names: [`swefarm-${version}`], seconds });
  const composition = join(out, `swefarm-${version}-compose.tar.gz`);
  await archive(composition, { from: '.', names: ['compose.yaml', 'dashboards'], seconds });
  const leftOut = await buildImages(out, { bundle, base, version });
  await rm(draft, { recursive: true });
  await writeFile(join(out, 'sbom.json'), await billOfMaterials(origin));
  await writeFile(join(out, 'NOTES.md'), `${notes}\n`);
  return leftOut;
}

/** Writes a compressed archive with fixed owners, order and times. */
async function archive(path, { from, names, seconds }) {
  const fixed = [
    '--sort=name',
    `--mtime=@${seconds}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
  ];
  await show('tar', ['-C', from, ...fixed, '--use-compress-program=gzip -n', '-cf', path, ...names]);
}

async function buildImages(out, { bundle, base, version }) {
  const name = await engine();
  if (name === null) return ['images: neither Docker nor Podman answers on this machine'];
  const args = ['--engine', name, '--tag', version, '--bundle', bundle, '--out', join(out, 'images')];
  await show(process.execPath, ['docker/build.mjs', ...args, ...(base ? ['--base', base] : [])]);
  return [];
}

/**
 * Links all files but the notes into the folder `assets`, because a forge attaches files without folders. Writes SHA256SUMS there, which
 * `sha256sum --check` reads. Returns name, bytes and digest of each file. Throws if two files have one name.
 */
export async function writeAssets(out, version) {
  const entries = await readdir(out, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const assets = join(out, 'assets');
  await mkdir(assets);
  const files = [];
  for (const path of paths.sort()) {
    const name = assetName(relative(out, path), version);
    if (name === 'NOTES.md') continue;
    await link(path, join(assets, name));
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(path)) hash.update(chunk);
    files.push({ name, bytes: (await stat(path)).size, sha256: hash.digest('hex') });
  }
  const lines = files.map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  await writeFile(join(assets, 'SHA256SUMS'), lines.join(''));
  return files;
}

/** The chart has the file name of the npm package, and the images have no version in theirs. */
function assetName(path, version) {
  if (path.startsWith('chart/')) return `swefarm-chart-${version}.tgz`;
  return path.startsWith('images/') ? `swefarm-${basename(path, '.tar')}-${version}.tar` : basename(path);
}
