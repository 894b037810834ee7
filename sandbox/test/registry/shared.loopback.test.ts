/** Pulls beside evictions, damaged blobs and failing pulls of other nodes. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { bootId } from '@swefarm/shared';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, it, vi } from 'vitest';
import { evictUnpacked } from '../../src/images/evict.ts';
import { openConnections } from '../../src/registry/connection.ts';
import { writeLayout } from '../../src/registry/layout.ts';
import { layerOf } from '../images/layer.ts';
import { NEVER } from '../subject.ts';
import { aNode, digestOf, startHostile } from './hostile.ts';

const noise = randomBytes(1_100_000).toString('latin1');
const base = await layerOf([{ name: 'base', content: noise }]);
const top = await layerOf([{ name: 'top', content: 'x' }]);
const FULL = { watermark: 0, pins: [], usedShare: async () => 1, now: Date.now() + 3_600_000 };

/** An image of two layers whose upper layer the registry sends only after `send`. */
async function startWaiting() {
  const waiting: ServerResponse[] = [];
  const held = { digest: '', isOpen: false };
  const registry = await startHostile((request, response) => {
    if (held.isOpen || !request.url?.endsWith(held.digest)) return false;
    waiting.push(response);
    return true;
  });
  const image = registry.image('good', [base, top]);
  held.digest = image.layers[1]?.digest ?? '';
  const send = (): void => {
    held.isOpen = true;
    // The client fetches again.
    for (const response of waiting) response.destroy();
  };
  return { registry, image, waiting, send };
}

it('files of lower layers remain when their tree is evicted during a pull', async () => {
  const { image, send } = await startWaiting();
  const node = await aNode();
  const pull = node.treeOf(image.name);
  const linked = () => readdirSync(join(node.store.root, 'partial'), { recursive: true });
  await expect.poll(async () => (await node.store.list()).length).toBe(1);
  await expect.poll(() => linked().some((path) => String(path).endsWith('tree/base'))).toBe(true);
  expect(await evictUnpacked(node.store, [], FULL)).toBe(1);
  send();
  expect(readdirSync(await pull).sort()).toEqual(['base', 'top']);
});

it('a bad image and evictions of other nodes take no blob from a pull', async () => {
  const { registry, image, waiting, send } = await startWaiting();
  const bad = registry.image('bad', [base], [`sha256:${'1'.repeat(64)}`]);
  const blobsDir = temporaryFolder('blobs');
  const [one, two] = [await aNode(blobsDir), await aNode(blobsDir)];
  const pull = one.treeOf(image.name);
  await expect.poll(() => waiting.length).toBe(1);
  const blobs = await two.registry.blobs;
  await expect.poll(async () => (await blobs.list()).length).toBeGreaterThan(0);
  await expect(two.treeOf(bad.name)).rejects.toThrow(/a layer has digest/);
  expect((await blobs.list()).map(({ digest }) => digest)).toContain(bad.layers[0]?.digest);
  expect(await two.registry.evict(FULL)).toBeGreaterThan(0);
  send();
  expect(readdirSync(await pull).sort()).toEqual(['base', 'top']);
});

it('a layout gets no damaged blob of the store', async () => {
  const registry = await startHostile();
  const { name, layers } = registry.image('v1', [base]);
  const node = await aNode();
  const [file = ''] = (layers[0]?.digest ?? '').split(':').slice(1);
  const written = async (): Promise<Buffer> => {
    const folder = temporaryFolder('layout');
    await node.registry.open(name, (image) => writeLayout(folder, image));
    return readFileSync(join(folder, 'blobs/sha256', file));
  };
  await written();
  const stored = join((await node.registry.blobs).folder, 'sha256', file);
  writeFileSync(stored, Buffer.alloc(layers[0]?.size ?? 0));
  expect(digestOf(await written())).toBe(layers[0]?.digest);
  expect(digestOf(readFileSync(stored))).toBe(layers[0]?.digest);
});

it('partial blobs that no process continues are removed after hours', async () => {
  const node = await aNode();
  const folder = join((await node.registry.blobs).folder, 'partial');
  const hex = 'a'.repeat(64);
  const names = {
    dead: `${hex}.${bootId()}.4000000-1-x`,
    elsewhere: `${hex}.other.5-1-x`,
    recent: `${hex}.${bootId()}.4000001-1-x`,
  };
  for (const name of Object.values(names)) writeFileSync(join(folder, name), 'x');
  for (const name of [names.dead, names.elsewhere]) utimesSync(join(folder, name), 1, 1);
  await node.registry.evict({ ...FULL, watermark: 1 });
  expect(readdirSync(folder)).toEqual([names.recent]);
});

it('a proxy is not asked for a registry of this machine', async () => {
  const asked: string[] = [];
  const proxy = await listening((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(502).end();
  });
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']) vi.stubEnv(name, proxy);
  try {
    const { host } = await startHostile();
    await using connections = openConnections({ ca: null, plainHttp: [] });
    const origin = await connections.origin(host, NEVER);
    expect((await connections.send(`${origin}/v2/`, { headers: {} }, NEVER)).statusCode).toBe(404);
    expect(asked).toEqual([]);
  } finally {
    vi.unstubAllEnvs();
  }
});
