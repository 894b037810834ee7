// Makes the archive of an image reproducible: fixes the times and the order of the files.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

// The sandbox package has a newer tar-stream than the top level.
const { extract, pack } = createRequire(new URL('../sandbox/package.json', import.meta.url))('tar-stream');
const run = promisify(execFile);
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/**
 * Rewrites a layer with the same modification time in all entries. The entries need no sorting: engines write them in the order of names.
 * @returns the digest of the new layer
 */
async function rewriteLayer(from, to, seconds) {
  const hash = createHash('sha256');
  const packed = pack();
  const entries = extract();
  entries.on('entry', (header, content, next) => {
    const { pax: _pax, ...kept } = header;
    const entry = packed.entry({ ...kept, mtime: new Date(seconds * 1000), uname: '', gname: '' }, next);
    content.pipe(entry);
  });
  entries.on('finish', () => packed.finalize());
  const file = createWriteStream(to);
  packed.on('data', (chunk) => hash.update(chunk));
  await Promise.all([pipeline(createReadStream(from), entries), pipeline(packed, file)]);
  return hash.digest('hex');
}

/**
 * Rewrites the archive of an image with fixed times.
 * @param archive file that `docker save` or `podman save --format docker-archive` wrote for one image
 * @param baseLayers number of layers of the base image, which stay unchanged
 * @param seconds time of the image and of all entries above the base image, in seconds since the epoch
 * @returns the path of the new archive and the image's id
 */
export async function rewriteArchive(archive, { folder, name, baseLayers, seconds }) {
  const old = join(folder, 'old');
  const fresh = join(folder, 'new');
  for (const path of [old, fresh]) {
    await rm(path, { recursive: true, force: true });
    await mkdir(path, { recursive: true });
  }
  await run('tar', ['-xf', archive, '-C', old]);
  const [manifest] = JSON.parse(await readFile(join(old, 'manifest.json'), 'utf8'));
  const config = JSON.parse(await readFile(join(old, manifest.Config), 'utf8'));
  const layers = [];
  for (const [index, path] of manifest.Layers.entries()) {
    const draft = join(fresh, 'draft.tar');
    if (index < baseLayers) await run('cp', ['--dereference', join(old, path), draft]);
    const digest =
      index < baseLayers
        ? config.rootfs.diff_ids[index].replace('sha256:', '')
        : await rewriteLayer(join(old, path), draft, seconds);
    await mkdir(join(fresh, digest), { recursive: true });
    await run('mv', [draft, join(fresh, digest, 'layer.tar')]);
    layers.push(digest);
  }
  const created = new Date(seconds * 1000).toISOString();
  const text = JSON.stringify({
    ...{ architecture: config.architecture, os: config.os, created, config: settingsOf(config.config) },
    rootfs: { type: 'layers', diff_ids: layers.map((digest) => `sha256:${digest}`) },
    history: layers.map((_, index) => ({
      created,
      created_by: index < baseLayers ? 'base' : 'swefarm docker/build.mjs',
    })),
  });
  const id = sha256(text);
  await writeFile(join(fresh, `${id}.json`), text);
  const entry = {
    Config: `${id}.json`,
    RepoTags: [name],
    Layers: layers.map((digest) => `${digest}/layer.tar`),
  };
  await writeFile(join(fresh, 'manifest.json'), JSON.stringify([entry]));
  const path = join(folder, 'image.tar');
  await run('tar', [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    `--mtime=@${seconds}`,
    '-cf',
    path,
    '-C',
    fresh,
    '.',
  ]);
  await rm(old, { recursive: true, force: true });
  await rm(fresh, { recursive: true, force: true });
  return { path, id: `sha256:${id}` };
}

/** Returns the settings that affect how an image runs, without those that differ between builds, such as names of build containers. */
function settingsOf(config) {
  const order = ['User', 'ExposedPorts', 'Env', 'Entrypoint', 'Cmd', 'WorkingDir', 'Labels'];
  return Object.fromEntries(order.filter((key) => config[key]).map((key) => [key, config[key]]));
}
