/**
 * Images of a real registry without an engine, through a proxy with faults: an image is complete and checked, or absent. Interrupted
 * blobs are resumed, and images share what they have in common.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { newId } from '@swefarm/shared';
import {
  noDistribution,
  type Push,
  pushImage,
  type RegistryProxy,
  startDistribution,
  startRegistryProxy,
} from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createFetch, readMirrors } from '../../src/images/fetch.ts';
import { openImageStore } from '../../src/images/store.ts';
import { RegistrySource } from '../../src/registry/source.ts';
import { RootImages } from '../../src/rootfs/images.ts';
import { type LayerEntry, layerOf } from '../images/layer.ts';
import { describeUnless, errorOf, NEVER } from '../subject.ts';

const CHILD = new URL('./killed.child.ts', import.meta.url).pathname;
const MEGA = 1024 ** 2;
const sum = (counts: readonly number[]): number => counts.reduce((total, one) => total + one, 0);
const noise = randomBytes(2 * MEGA).toString('latin1');

/** One node: its store of images, and what a worker on it does. */
async function aNode(
  settings: { blobsDir?: string; mirrors?: string[]; auth?: string[]; imagesDir?: string } = {},
) {
  const { imagesDir = temporaryFolder('node'), mirrors = [], auth = [] } = settings;
  const store = await openImageStore(imagesDir);
  const waits: number[] = [];
  const registry = new RegistrySource({
    ...{ ca: null, plainHttp: [], blobsDir: settings.blobsDir ?? null, folder: join(store.root, 'blobs') },
    fetch: createFetch({ atOnce: 3, mirrors: readMirrors(mirrors), registryAuth: auth }, async (ms) =>
      waits.push(ms),
    ),
  });
  const images = new RootImages({ store, engine: null, registry, prepare: async () => undefined });
  const treeOf = async (name: string): Promise<string> =>
    images.layers(await images.ensure(name, NEVER)).lowers[0] ?? '';
  const left = (): string[] =>
    ['partial', 'images', 'blobs/sha256', 'blobs/partial'].flatMap((at) => readdirSync(join(store.root, at)));
  return { store, images, registry, treeOf, left, waits };
}

describeUnless(noDistribution(), 'a registry without an engine', () => {
  let real: Awaited<ReturnType<typeof startDistribution>>;
  let proxy: RegistryProxy;
  beforeAll(async () => {
    real = await startDistribution();
  });
  afterAll(() => real[Symbol.asyncDispose]());
  beforeEach(async () => {
    proxy = await startRegistryProxy(real.address);
    return () => proxy[Symbol.asyncDispose]();
  });

  /** Pushes an image of one layer for each list of entries; returns its name behind the proxy. */
  async function pushed(
    layers: readonly (readonly LayerEntry[])[],
    more: Partial<Push> = {},
  ): Promise<string> {
    const repository = `t/${newId().toLowerCase()}`;
    const tars = await Promise.all(layers.map((entries) => layerOf(entries)));
    const push = {
      origin: `http://${real.address}`,
      repository,
      tag: 'v1',
      layers: tars.map((tar) => ({ tar })),
    };
    await pushImage({ ...push, ...more });
    return `${proxy.address}/${repository}:v1`;
  }
  const large = (): Promise<string> => pushed([[{ name: 'large', content: noise }]]);

  it('applies layers of every compression in order, from an index for several machines', async () => {
    const long = `${'deep/'.repeat(30)}${'n'.repeat(120)}`;
    const layers: LayerEntry[][] = [
      [
        { name: 'etc/', type: 'directory', mode: 0o750 },
        { name: 'etc/removed', content: 'old' },
        { name: 'etc/kept', content: 'kept', mode: 0o640, uid: 12, gid: 34 },
        { name: 'opaque/', type: 'directory' },
        { name: 'opaque/below', content: 'hidden' },
        { name: 'replaced', content: 'one' },
      ],
      [
        { name: 'etc/.wh.removed', content: '' },
        { name: 'opaque/.wh..wh..opq', content: '' },
        { name: 'opaque/above', content: 'seen' },
        { name: 'replaced', content: 'two' },
        { name: 'linked', type: 'link', linkname: 'etc/kept' },
      ],
      [
        { name: long, content: 'long' },
        { name: 'symbolic', type: 'symlink', linkname: '/etc/kept' },
      ],
    ];
    const tars = await Promise.all(layers.map((entries) => layerOf(entries)));
    const [first, second, third] = tars as [Buffer, Buffer, Buffer];
    const name = await pushed([], {
      index: true,
      config: { Env: ['A=b'], WorkingDir: '/etc', User: '12' },
      layers: [
        { tar: first, blob: gzipSync(first), compression: 'gzip' },
        { tar: second, blob: zstdCompressSync(second), compression: 'zstd' },
        { tar: third },
      ],
    });
    const node = await aNode();
    const image = await node.images.ensure(name, NEVER);
    expect(image).toMatchObject({ user: '12', workdir: '/etc', pulled: true });
    expect(node.images.layers(image).config.env).toEqual({ A: 'b' });
    const tree = await node.treeOf(name);
    const listed = spawnSync('find', ['.', '-type', 'f', '-printf', '%P\n'], { cwd: tree, encoding: 'utf8' });
    expect(listed.stdout.split('\n').filter(Boolean).sort()).toEqual(
      ['etc/kept', 'linked', 'opaque/above', 'replaced', long].sort(),
    );
    expect(readFileSync(join(tree, 'replaced'), 'utf8')).toBe('two');
    const kept = statSync(join(tree, 'etc/kept'));
    expect([kept.ino, kept.mode & 0o777]).toEqual([statSync(join(tree, 'linked')).ino, 0o640]);
    if (process.getuid?.() === 0) expect([kept.uid, kept.gid]).toEqual([12, 34]);
    expect(statSync(join(tree, 'etc')).mode & 0o777).toBe(0o750);
    expect((await node.images.ensure(name, NEVER)).pulled).not.toBe(true);
  });

  it('an image of the store is not requested again, and its blobs are removed', async () => {
    const name = await large();
    const node = await aNode();
    await node.treeOf(name);
    const asked = proxy.requests.length;
    const again = await aNode({ imagesDir: join(node.store.root, '..') });
    await again.treeOf(name);
    expect(proxy.requests).toHaveLength(asked);
    expect(readdirSync(join(node.store.root, 'blobs/sha256'))).toEqual([]);
    expect(readdirSync(join(node.store.root, 'partial'))).toEqual([]);
  });

  it('continues a blob after each cut connection, and transfers no byte twice', async () => {
    const name = await large();
    proxy.fault({ of: 'blobs', cutAfter: 300_000 }, 8);
    const node = await aNode();
    const tree = await node.treeOf(name);
    expect(readFileSync(join(tree, 'large'), 'latin1').length).toBeGreaterThan(2 * MEGA);
    expect(proxy.requests.filter((line) => line.includes('bytes='))).not.toEqual([]);
    // The proxy passes bytes that a cut connection loses.
    expect(proxy.bytes).toBeLessThan(1.5 * Buffer.byteLength(noise));
  });

  it('begins anew at a registry that ignores ranges', async () => {
    const name = await large();
    proxy.fault({ of: 'blobs', cutAfter: 3_000_000 }, 2);
    proxy.fault({ of: 'blobs', noRange: true }, 3);
    const node = await aNode();
    expect(statSync(join(await node.treeOf(name), 'large')).size).toBe(Buffer.byteLength(noise));
  });

  it('gives up after five tries without a byte, leaves no image, and continues later', async () => {
    const name = await large();
    const node = await aNode();
    proxy.fault({ of: 'blobs', cutAfter: 1_000_000 }, 2);
    proxy.fault({ of: 'blobs', status: 503 }, 100);
    await expect(node.treeOf(name)).rejects.toMatchObject({
      failureClass: 'image_pull',
      message: expect.stringContaining('503'),
    });
    expect(await node.store.usage()).toEqual({ count: 0, bytes: 0 });
    const other = await startRegistryProxy(real.address);
    const mirrored = await aNode({
      imagesDir: join(node.store.root, '..'),
      mirrors: [`${proxy.address}/=${other.address}/`],
    });
    await mirrored.treeOf(name);
    expect(other.bytes).toBeLessThan(Buffer.byteLength(noise) - 500_000);
    await other[Symbol.asyncDispose]();
  });

  it('the blob of a killed process is continued by the next process', async () => {
    const name = await large();
    const imagesDir = temporaryFolder('killed');
    proxy.fault({ of: 'blobs', delayMs: 400 }, 9);
    const child = spawn(process.execPath, [CHILD, imagesDir, name], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const node = await aNode({ imagesDir });
    const partial = join(node.store.root, 'blobs/partial');
    const bytes = (): number =>
      existsSync(partial) ? sum(readdirSync(partial).map((file) => statSync(join(partial, file)).size)) : 0;
    await expect.poll(bytes, { timeout: 120_000, interval: 50 }).toBeGreaterThan(200_000);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const found = bytes();
    const other = await startRegistryProxy(real.address);
    const next = await aNode({ imagesDir, mirrors: [`${proxy.address}/=${other.address}/`] });
    expect(statSync(join(await next.treeOf(name), 'large')).size).toBe(Buffer.byteLength(noise));
    expect(other.requests.some((line) => line.includes('bytes='))).toBe(true);
    expect(other.bytes).toBeLessThan(Buffer.byteLength(noise) + 20_000 - found);
    await other[Symbol.asyncDispose]();
  });

  it.each(['blobs', 'manifests'] as const)('content of %s with another digest is no image', async (of) => {
    const repository = `t/${newId().toLowerCase()}`;
    const digest = await pushImage({
      ...{ origin: `http://${real.address}`, repository, tag: 'v1' },
      layers: [{ tar: await layerOf([{ name: 'large', content: noise }]) }],
    });
    const name = `${proxy.address}/${repository}@${digest}`;
    const node = await aNode();
    proxy.fault({ of, flip: true });
    await expect(node.treeOf(name)).rejects.toMatchObject({
      failureClass: 'image_pull',
      message: expect.stringContaining('has digest sha256:'),
    });
    expect(node.left()).toEqual([]);
    expect(statSync(join(await node.treeOf(name), 'large')).size).toBe(Buffer.byteLength(noise));
  });

  it('a layer whose uncompressed content differs from the configuration is no image', async () => {
    const [tar, other] = [
      await layerOf([{ name: 'a', content: 'a' }]),
      await layerOf([{ name: 'a', content: 'b' }]),
    ];
    const name = await pushed([], { layers: [{ tar, blob: gzipSync(other), compression: 'gzip' }] });
    const node = await aNode();
    await expect(node.treeOf(name)).rejects.toMatchObject({
      failureClass: 'image_pull',
      message: expect.stringMatching(/a layer has digest sha256:\w+, not sha256:/),
    });
    expect(node.left()).toEqual([]);
  });

  it('waits as long as a registry requests, and reports what it cannot get', async () => {
    const name = await large();
    const node = await aNode();
    proxy.fault({ of: 'manifests', status: 429, headers: { 'retry-after': '17' } });
    proxy.fault({ of: 'blobs', status: 429, headers: { 'retry-after': '23' } }, 1);
    await node.treeOf(name);
    expect(node.waits.map((ms) => Math.floor(ms / 1000)).map((seconds) => seconds >= 17)).toEqual([
      true,
      true,
    ]);
    proxy.fault({ of: 'manifests', status: 401 }, 9);
    await expect(node.treeOf(await large())).rejects.toMatchObject({
      failureClass: 'image_pull',
      message: expect.stringContaining('registry_auth'),
    });
    await expect(node.treeOf(`${real.address}/t/nothing:v1`)).rejects.toMatchObject({
      failureClass: 'image_not_found',
      message: expect.stringContaining('404'),
    });
    for (const bad of [`${real.address}/Upper/case`, `${real.address}/a@sha256:12`])
      await expect(node.treeOf(bad)).rejects.toMatchObject({ failureClass: 'image_not_found' });
    const closed = await errorOf(node.treeOf('127.0.0.1:1/a/b:v1'));
    expect(closed).toMatchObject({
      failureClass: 'image_pull',
      message: expect.stringContaining('image_mirrors'),
    });
  });

  it('images of one base fetch it once and share its files', async () => {
    const base = [{ name: 'base/file', content: noise }];
    const names = await Promise.all(
      Array.from({ length: 4 }, (_, at) =>
        pushed([base, [{ name: 'own', content: `image ${at}` }], [{ name: 'small', content: 'common' }]]),
      ),
    );
    const imagesDir = temporaryFolder('shared');
    const nodes = await Promise.all(names.map(() => aNode({ imagesDir })));
    const trees = await Promise.all(names.map((name, at) => nodes[at]?.treeOf(name) ?? ''));
    expect(new Set(trees.map((tree) => statSync(join(tree, 'base/file')).ino)).size).toBe(1);
    expect(trees.map((tree) => readFileSync(join(tree, 'own'), 'utf8'))).toEqual(
      names.map((_, at) => `image ${at}`),
    );
    expect(proxy.bytes).toBeLessThan(2 * Buffer.byteLength(noise));
    const { count, bytes } = (await nodes[0]?.store.usage()) ?? { count: 0, bytes: 0 };
    expect([count, bytes < 1.1 * Buffer.byteLength(noise)]).toEqual([4, true]);
  });

  it('an upper layer does not change the files of images with the same base', async () => {
    const base = [
      { name: 'file', content: noise },
      { name: 'folder/one', content: 'one' },
    ];
    const upper: LayerEntry[] = [
      { name: 'file', content: 'replaced', mode: 0o600 },
      { name: 'folder/', type: 'directory', mode: 0o700 },
      { name: 'folder/.wh.one', content: '' },
    ];
    const [plain, changed] = [
      await pushed([base, [{ name: 'x', content: 'x' }]]),
      await pushed([base, upper]),
    ];
    const node = await aNode();
    const [above, below] = [await node.treeOf(changed), await node.treeOf(plain)];
    expect(readFileSync(join(above, 'file'), 'utf8')).toBe('replaced');
    expect(statSync(join(below, 'file')).size).toBe(Buffer.byteLength(noise));
    expect(readFileSync(join(below, 'folder/one'), 'utf8')).toBe('one');
    expect(statSync(join(below, 'folder')).mode & 0o777).toBe(0o755);
  });

  it('nodes with one folder of blobs fetch an image once for all of them', async () => {
    const name = await large();
    const blobsDir = temporaryFolder('blobs');
    const nodes = await Promise.all([aNode({ blobsDir }), aNode({ blobsDir }), aNode({ blobsDir })]);
    const trees = await Promise.all(nodes.map((node) => node.treeOf(name)));
    expect(new Set(trees).size).toBe(3);
    expect(proxy.requests.filter((line) => /blobs\/.*/.test(line)).length).toBeLessThan(2 * 3 + 1);
    expect(proxy.bytes).toBeLessThan(1.1 * Buffer.byteLength(noise));

    // A damaged blob of the folder becomes no image, and the next attempt fetches it again.
    const own = join(blobsDir, process.getuid?.() === 0 ? 'v1' : `v1.uid${process.getuid?.()}`, 'sha256');
    const [blob = ''] = readdirSync(own).filter((file) => statSync(join(own, file)).size > MEGA);
    const bytes = readFileSync(join(own, blob));
    bytes[MEGA] = (bytes[MEGA] ?? 0) ^ 1;
    writeFileSync(join(own, blob), bytes);
    const fourth = await aNode({ blobsDir });
    await expect(fourth.treeOf(name)).rejects.toMatchObject({ failureClass: 'image_pull' });
    expect(statSync(join(await fourth.treeOf(name), 'large')).size).toBe(Buffer.byteLength(noise));
  });

  it('a full disk is the fault of the node, and leaves nothing', async ({ skip }) => {
    if (process.getuid?.() !== 0) skip('only root can mount a small disk');
    const small = temporaryFolder('full');
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=9m', 'tmpfs', small]);
    try {
      const name = await pushed([], { layers: await compressed('\0'.repeat(30 * MEGA)) });
      const node = await aNode({ imagesDir: join(small, 'images') });
      await expect(node.treeOf(name)).rejects.toMatchObject({ failureClass: 'node_disk' });
      expect(readdirSync(join(node.store.root, 'images'))).toEqual([]);
      expect(readdirSync(join(node.store.root, 'partial'))).toEqual([]);
    } finally {
      spawnSync('umount', [small]);
    }
  });
});

async function compressed(content: string) {
  const tar = await layerOf([{ name: 'file', content }]);
  return [{ tar, blob: gzipSync(tar), compression: 'gzip' as const }];
}
