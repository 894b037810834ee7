/** Measures pulls of related images from one registry: by the farm without an engine, by Docker, and by skopeo, which unpacks nothing. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { newId } from '@swefarm/shared';
import {
  noDistribution,
  pushImage,
  type RegistryProxy,
  startDistribution,
  startRegistryProxy,
} from '@swefarm/testkit';
import { skippedLines, table } from './print.ts';
import type { Skipped } from './sandbox.ts';
import { median, rounded, sum } from './statistics.ts';

const WORKER = resolve(import.meta.dirname, '../worker/bin/swefarm-worker.mjs');
const MEGA = 1e6;

/** Images with two common layers of files of this machine, and one layer of their own. Sizes are of uncompressed layers. */
export type RegistrySize = { images: number; lower_mb: number; middle_mb: number; own_mb: number };

/** `first_s`: of one image. `rest_s`: of all others, one after another. `network_mb`: bodies that the registry sent. `disk_mb`: at the end. */
type ClientRow = { client: string; first_s: number; rest_s: number; network_mb: number; disk_mb: number };
type RegistryCell = RegistrySize & { compressed_mb: number; rows: ClientRow[] };
export type RegistryPart = { reps: number; cells: RegistryCell[]; skipped: Skipped[] };

type Client = {
  name: string;
  pull(images: readonly string[], folder: string): Promise<void>;
  /** Returns the bytes on the disk, without what other images share. */
  diskBytes(images: readonly string[], folder: string): Promise<number>;
  clean(images: readonly string[]): Promise<void>;
};

const usedBytes = async (folder: string): Promise<number> =>
  Number((await output(['du', '-s', '--block-size=1', folder])).split('\t')[0]);

const CLIENTS: readonly Client[] = [
  {
    name: 'swefarm images pull (rootfs)',
    async pull(images, folder) {
      const env = {
        SWEFARM_STATE_DIR: folder,
        SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
        SWEFARM_IMAGE_PULLS: '1',
      };
      // No engine answers there, so the images come from the registry.
      const none = { SWEFARM_DOCKER_SOCKET: join(folder, 'none.sock') };
      const needed = images.map((image) => `${JSON.stringify({ image, instances: [] })}\n`).join('');
      await output(
        [process.execPath, WORKER, 'images', 'pull', '--runtime', 'rootfs'],
        { ...env, ...none },
        needed,
      );
    },
    diskBytes: (_images, folder) => usedBytes(join(folder, 'images')),
    clean: async () => undefined,
  },
  {
    name: 'docker pull',
    async pull(images) {
      for (const image of images) await output(['docker', 'pull', '--quiet', image]);
    },
    async diskBytes(images) {
      const format = '{{.GraphDriver.Data.UpperDir}}:{{.GraphDriver.Data.LowerDir}}';
      const lines = await output(['docker', 'image', 'inspect', '--format', format, ...images]);
      const folders = [...new Set(lines.trim().split(/[:\n]/))];
      return sum(await Promise.all(folders.map(usedBytes)));
    },
    async clean(images) {
      await output(['docker', 'rmi', '--force', ...images]);
    },
  },
  {
    name: 'skopeo copy (blobs only)',
    async pull(images, folder) {
      const shared = ['--dest-shared-blob-dir', join(folder, 'blobs')];
      for (const image of images) {
        const layout = `oci:${join(folder, newId())}`;
        await output([
          'skopeo',
          'copy',
          '--quiet',
          '--src-tls-verify=false',
          ...shared,
          `docker://${image}`,
          layout,
        ]);
      }
    },
    diskBytes: (_images, folder) => usedBytes(folder),
    clean: async () => undefined,
  },
];

export async function measureRegistry(sizes: readonly RegistrySize[], reps: number): Promise<RegistryPart> {
  const why = noDistribution();
  if (why !== null) return { reps, cells: [], skipped: [{ what: 'pulls from a registry', why }] };
  const cells: RegistryCell[] = [];
  await using registry = await startDistribution();
  for (const size of sizes) {
    const { names, compressedBytes } = await pushRelated(`http://${registry.address}`, size);
    const rounds = CLIENTS.map((): ClientRow[] => []);
    for (let rep = 0; rep < reps; rep++)
      for (const [at, client] of CLIENTS.entries())
        rounds[at]?.push(await measure(client, registry.address, names));
    cells.push({
      ...size,
      compressed_mb: rounded(compressedBytes / MEGA, 0),
      rows: rounds.map((rows, at) => ({ client: CLIENTS[at]?.name ?? '', ...medians(rows) })),
    });
  }
  return { reps, cells, skipped: [] };
}

const medians = (rows: readonly ClientRow[]): Omit<ClientRow, 'client'> => {
  const of = (name: Exclude<keyof ClientRow, 'client'>) => rounded(median(rows.map((row) => row[name])), 1);
  return {
    first_s: of('first_s'),
    rest_s: of('rest_s'),
    network_mb: of('network_mb'),
    disk_mb: of('disk_mb'),
  };
};

async function measure(client: Client, target: string, names: readonly string[]): Promise<ClientRow> {
  await using proxy: RegistryProxy = await startRegistryProxy(target);
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-bench-registry-'));
  const [first = '', ...rest] = names.map((name) => `${proxy.address}/${name}`);
  try {
    const timed = async (images: readonly string[]): Promise<number> => {
      const from = performance.now();
      await client.pull(images, folder);
      return (performance.now() - from) / 1000;
    };
    const [first_s, rest_s] = [await timed([first]), await timed(rest)];
    const disk_mb = (await client.diskBytes([first, ...rest], folder)) / MEGA;
    return { client: client.name, first_s, rest_s, network_mb: proxy.bytes / MEGA, disk_mb };
  } finally {
    await client.clean([first, ...rest]);
    await rm(folder, { recursive: true, force: true });
  }
}

async function pushRelated(
  origin: string,
  { images, lower_mb, middle_mb, own_mb }: RegistrySize,
): Promise<{ names: string[]; compressedBytes: number }> {
  const files = await filesOfMachine((lower_mb + middle_mb) * MEGA);
  const layer = (tar: Buffer) => ({ tar, blob: gzipSync(tar, { level: 1 }), compression: 'gzip' as const });
  const common = [
    layer(await tarOf(files(0, lower_mb * MEGA))),
    layer(await tarOf(files(lower_mb * MEGA, Infinity))),
  ];
  const names: string[] = [];
  let compressedBytes = sum(common.map(({ blob }) => blob.length));
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-bench-own-'));
  for (let at = 0; at < images; at++) {
    const repository = `bench/${newId().toLowerCase()}`;
    await writeFile(join(folder, 'own'), randomBytes(own_mb * MEGA));
    const own = layer(await buffer(started(['tar', '-C', folder, '-cf', '-', 'own']).stdout));
    await pushImage({ origin, repository, tag: 'v1', layers: [...common, own] });
    compressedBytes += own.blob.length;
    names.push(`${repository}:v1`);
  }
  await rm(folder, { recursive: true, force: true });
  return { names, compressedBytes };
}

/** Returns a function that selects files of /usr between two numbers of bytes. */
async function filesOfMachine(most: number): Promise<(from: number, to: number) => string[]> {
  const lines = (
    await output(['find', '/usr', '-xdev', '-type', 'f', '-size', '-20000k', '-printf', '%s %P\n'])
  ).split('\n');
  const found: { path: string; at: number }[] = [];
  let at = 0;
  for (const line of lines) {
    const [, size, path] = /^(\d+) (.+)$/.exec(line) ?? [];
    if (path === undefined || at >= most) continue;
    found.push({ path, at });
    at += Number(size);
  }
  return (from, to) => found.filter((one) => one.at >= from && one.at < to).map(({ path }) => path);
}

async function tarOf(paths: readonly string[]): Promise<Buffer> {
  const child = started(['tar', '-C', '/usr', '--null', '-T', '-', '-cf', '-']);
  child.stdin.end(paths.map((path) => `${path}\0`).join(''));
  return await buffer(child.stdout);
}

const started = ([program = '', ...args]: readonly string[], env: Record<string, string> = {}) =>
  spawn(program, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });

/** Runs a program and returns its output. Throws if it fails. */
async function output(
  line: readonly string[],
  env: Record<string, string> = {},
  input = '',
): Promise<string> {
  const child = started(line, env);
  const ended = new Promise<number | null>((done) => child.once('close', done));
  // A program that reads no input may end before the write.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const printed = await text(child.stdout);
  const code = await ended;
  if (code !== 0) throw new Error(`${line.slice(0, 4).join(' ')} ended with ${code}: ${printed.slice(-300)}`);
  return printed;
}

export function printRegistry({ cells, reps, skipped }: RegistryPart): string {
  const parts = cells.flatMap(({ images, lower_mb, middle_mb, own_mb, compressed_mb, rows }) => [
    `${images} images of ${lower_mb} + ${middle_mb} + ${own_mb} MB, the first two layers in common, ${compressed_mb} MB compressed (${reps} rounds)`,
    table([
      ['client', 'first image s', `${images - 1} others s`, 'network MB', 'disk MB'],
      ...rows.map(({ client, first_s, rest_s, network_mb, disk_mb }) => [
        client,
        first_s,
        rest_s,
        network_mb,
        disk_mb,
      ]),
    ]),
  ]);
  return [...parts, ...skippedLines(skipped)].join('\n');
}
