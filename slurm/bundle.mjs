// Makes the folder ("bundle") from which nodes run swefarm: compiled commands and threads, the data files of sources, a Node binary, and
// a static Redis server if available. Nodes need no installation, and the shared file system has no node_modules.
// usage: npm run bundle [-- --out DIR]      default: dist/swefarm
import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../compile/pieces.mjs';
import { COMMANDS, writeTree } from '../compile/tree.mjs';
import { fetchedServer } from '../shared/src/redis/server.ts';

const launcher = (entry) => `#!/bin/sh
# Runs the bundled command on the Node beside it.
here=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd) || exit 12
exec "$here/bin/node" "$here/${entry}" "$@"
`;

async function addPrograms(out) {
  await mkdir(join(out, 'bin'), { recursive: true });
  const require = createRequire(import.meta.url);
  const node = join(dirname(require.resolve(`node-linux-${process.arch}/package.json`)), 'bin', 'node');
  await cp(node, join(out, 'bin', 'node'));
  for (const [name, entry] of Object.entries(COMMANDS)) {
    await writeFile(join(out, 'bin', name), launcher(entry));
    await chmod(join(out, 'bin', name), 0o755);
  }
  try {
    await cp(await fetchedServer(join(ROOT, '.swefarm/bin')), join(out, 'bin', 'valkey-server'));
  } catch (error) {
    console.error(`bundle: without a Redis server, so the first node must have one: ${error.message}`);
  }
}

/** Writes a hash of the content to `bundle-id`, which identifies the build in the software version. */
async function writeId(out) {
  const hash = createHash('sha256');
  for (const file of (await readdir(out, { recursive: true, withFileTypes: true })).sort(byPath)) {
    if (file.isFile()) hash.update(file.name).update(await readFile(join(file.parentPath, file.name)));
  }
  await writeFile(join(out, 'bundle-id'), `${hash.digest('hex').slice(0, 16)}\n`);
}
const byPath = (a, b) => (join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1);

const { values } = parseArgs({ options: { out: { type: 'string' } } });
const target = resolve(values.out ?? join(ROOT, 'dist/swefarm'));
const draft = `${target}.draft-${process.pid}`;
await rm(draft, { recursive: true, force: true });
await mkdir(draft, { recursive: true });
await writeTree(draft);
await addPrograms(draft);
await cp(join(ROOT, 'slurm'), join(draft, 'slurm'), {
  recursive: true,
  filter: (path) => !path.endsWith('.mjs'),
});
const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const own = { type: 'module', private: true, version };
await writeFile(join(draft, 'package.json'), `${JSON.stringify(own)}\n`);
await writeId(draft);
const size = (await readdir(draft, { recursive: true, withFileTypes: true })).filter((file) => file.isFile());
let bytes = 0;
for (const file of size) bytes += (await stat(join(file.parentPath, file.name))).size;
// A bundle in use stays complete until the new one replaces it.
await rm(`${target}.old`, { recursive: true, force: true });
await rename(target, `${target}.old`).catch((error) => {
  if (error.code !== 'ENOENT') throw error;
});
await rename(draft, target);
await rm(`${target}.old`, { recursive: true, force: true });
console.error(
  `bundle: ${size.length} files, ${(bytes / 1024 ** 2).toFixed(0)} MiB: ${relative(process.cwd(), target) || target}`,
);
