// Builds the images of worker and gateway with Docker or Podman. The same commit on the same base image gives the same image ids.
// usage: npm run images [-- --base IMAGE] [--engine docker|podman] [--prefix swefarm-] [--tag VERSION] [--bundle DIR] [--out DIR]
//                       [--network NET] [--fresh]
//   --bundle DIR   an existing bundle; default: a new one is made
//   --fresh        uses no cache
//   --out DIR      also writes DIR/worker.tar and DIR/gateway.tar, for nodes without a registry
// Prints one JSON line for each image. Exit codes: 0 success; 2 wrong usage; 12 no engine is usable, or a build failed.
import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { billOfMaterials, originOf } from '../compile/origin.mjs';
import { rewriteArchive } from './archive.mjs';

const ROOT = resolve(import.meta.dirname, '..');
const run = promisify(execFile);
const BASE = 'docker.io/library/debian:bookworm-slim';

class Failure extends Error {
  constructor(message, code = 12) {
    super(message);
    this.code = code;
  }
}

const string = { type: 'string' };
function readArguments() {
  try {
    const names = ['base', 'engine', 'prefix', 'tag', 'bundle', 'out', 'network'];
    const options = Object.fromEntries(names.map((name) => [name, string]));
    return parseArgs({ options: { ...options, fresh: { type: 'boolean' } } }).values;
  } catch (error) {
    throw new Failure(error.message, 2);
  }
}

/** Runs a program with all output on standard error, because standard output is for the JSON lines of the images. */
function show(command, args, env = {}) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      stdio: ['ignore', 2, 2],
      env: { ...process.env, ...env },
    });
    child.on('error', fail);
    child.on('exit', (code) =>
      code === 0 ? done() : fail(new Failure(`${command} ${args[0]} ended with ${code}`)),
    );
  });
}

async function engineOf(asked) {
  const names = asked ? [asked] : ['docker', 'podman'];
  const problems = [];
  for (const name of names) {
    try {
      await run(name, ['info', '--format', '{{json .}}'], { maxBuffer: 1 << 24 });
      return name;
    } catch (error) {
      problems.push(`${name}: ${(error.stderr || error.message).trim().split('\n')[0]}`);
    }
  }
  throw new Failure(`no engine can build: ${problems.join('; ')}`);
}

async function makeContext(folder, bundle, origin) {
  await mkdir(folder, { recursive: true });
  for (const name of ['Dockerfile', 'packages.sh', 'worker.sh'])
    await cp(join(import.meta.dirname, name), join(folder, name));
  await writeFile(join(folder, 'sbom.json'), await billOfMaterials(origin));
  await cp(bundle, join(folder, 'bundle'), { recursive: true });
  await cp(bundle, join(folder, 'gateway'), {
    recursive: true,
    filter: (path) =>
      !/^(worker|sandbox|slurm|code\/(worker|sandbox)-.*|bin\/(swefarm-worker|valkey-server))$/.test(
        path.slice(bundle.length + 1),
      ),
  });
  // The modes of the bundle's files depend on the umask with which the bundle was built.
  await run('chmod', ['-R', 'u=rwX,go=rX', folder]);
}

async function build(engine, target, options) {
  const { context, folder, base, network, fresh, tag, prefix, origin } = options;
  const draft = `${prefix}${target}:draft-${process.pid}`;
  const given = { BASE: base, VERSION: origin.version, REVISION: origin.revision, SOURCE: origin.source };
  const args = Object.entries(given).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]);
  await show(engine, [
    'build',
    '--target',
    target,
    '-t',
    draft,
    ...args,
    ...(network ? ['--network', network] : []),
    ...(fresh ? ['--no-cache'] : []),
    context,
  ]);
  const inspect = async (name) =>
    JSON.parse((await run(engine, ['image', 'inspect', name], { maxBuffer: 1 << 24 })).stdout)[0];
  try {
    const baseLayers = (await inspect(base)).RootFS.Layers.length;
    const saved = join(folder, `${target}.saved.tar`);
    await run(engine, [
      'save',
      ...(engine === 'podman' ? ['--format', 'docker-archive'] : []),
      '-o',
      saved,
      draft,
    ]);
    const name = `${prefix}${target}:${tag}`;
    const { path, id } = await rewriteArchive(saved, {
      folder: join(folder, target),
      name,
      baseLayers,
      seconds: origin.seconds,
    });
    await rm(saved);
    await run(engine, ['load', '-i', path], { maxBuffer: 1 << 24 });
    const { Size } = await inspect(name);
    return { name, id, bytes: Size, path };
  } finally {
    await run(engine, ['rmi', '--no-prune', draft]).catch(() =>
      run(engine, ['rmi', draft]).catch(() => undefined),
    );
  }
}

async function main() {
  const given = readArguments();
  const engine = await engineOf(given.engine);
  const origin = await originOf();
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-images-'));
  try {
    const bundle = given.bundle ? resolve(given.bundle) : join(folder, 'bundle');
    if (!given.bundle) await show(process.execPath, ['slurm/bundle.mjs', '--out', bundle]);
    const context = join(folder, 'context');
    await makeContext(context, bundle, origin);
    const base = given.base ?? BASE;
    await run(engine, ['image', 'inspect', base]).catch(() => show(engine, ['pull', base]));
    const options = {
      context,
      folder,
      base,
      network: given.network,
      fresh: given.fresh ?? false,
      tag: given.tag ?? origin.version,
      prefix: given.prefix ?? 'swefarm-',
      origin,
    };
    for (const target of ['worker', 'gateway']) {
      const { path, ...image } = await build(engine, target, options);
      if (given.out) {
        await mkdir(given.out, { recursive: true });
        const end = join(resolve(given.out), `${target}.tar`);
        await run('cp', [path, `${end}.partial`]);
        await rename(`${end}.partial`, end);
      }
      console.log(JSON.stringify(image));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

await main().catch((error) => {
  console.error(`images: ${error.message}`);
  process.exitCode = error.code === 2 ? 2 : 12;
});
