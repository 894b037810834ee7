/**
 * Images on a real engine, from a registry that limits rates and fails: pulled once, with retries, from mirrors; evicted when
 * the disk is full.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '@swefarm/shared';
import { ensureDocker, startRegistry } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { evictPulled } from '../../src/engine/evict.ts';
import { createEnsureImage } from '../../src/engine/images.ts';
import { createFetch, type Fetch, readMirrors } from '../../src/images/fetch.ts';
import { openPulledImages } from '../../src/images/pulledimages.ts';
import { ImageExporter } from '../../src/rootfs/export.ts';
import { errorOf } from '../subject.ts';
import { layerOf } from './layer.ts';

const socketPath = '/var/run/docker.sock';
const open = new AbortController().signal;
const docker = new Docker({ socketPath });
const folder = temporaryFolder('images');
const made: string[] = [];
let engine: AsyncDisposable;
let registry: Awaited<ReturnType<typeof startRegistry>>;

beforeAll(async () => {
  engine = await ensureDocker({ socketPath });
  registry = await startRegistry();
});
afterAll(async () => {
  await Promise.all(made.map((name) => errorOf(docker.getImage(name).remove({ force: true }))));
  await registry[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function anImage(): Promise<string> {
  const name = `t-${newId().toLowerCase()}`;
  registry.add(name, await layerOf([{ name: 'file', content: name.repeat(2_000) }]));
  made.push(`${registry.address}/${name}`);
  return name;
}

function aSource(mirrors: string[] = [], registryAuth: string[] = []) {
  const pulled = openPulledImages(join(folder, `${newId()}.json`));
  const fetch = createFetch({ atOnce: 2, mirrors: readMirrors(mirrors), registryAuth });
  return { pulled, ensure: createEnsureImage({ docker, fetch, pulled }) };
}

test('many callers share one pull, which is retried and recorded with its digest', async () => {
  const name = `${registry.address}/${await anImage()}`;
  const { pulled, ensure } = aSource();
  registry.fault('limited', 1);
  const ready = await Promise.all(Array.from({ length: 8 }, () => ensure(name, open)));
  expect(new Set(ready.map(({ digest }) => digest)).size).toBe(1);
  expect((await pulled.list()).get(name)).toMatchObject({ digest: ready[0]?.digest });
});

test('an incomplete body is no image', async () => {
  const name = `${registry.address}/${await anImage()}`;
  const { pulled, ensure } = aSource();
  registry.fault('cut', 100);
  await expect(ensure(name, open)).rejects.toMatchObject({ failureClass: 'image_pull' });
  expect((await pulled.list()).has(name)).toBe(false);
  registry.fault('cut', 0);
  await expect(ensure(name, open)).resolves.toMatchObject({ pulled: true });
});

test('an image of a mirror gets the requested name', async () => {
  const name = await anImage();
  const { ensure } = aSource([`nowhere.example/=${registry.address}/`]);
  made.push(`nowhere.example/${name}`);
  await expect(ensure(`nowhere.example/${name}`, open)).resolves.toMatchObject({ pulled: true });
  await expect(ensure(`nowhere.example/${name}`, open)).resolves.not.toMatchObject({ pulled: true });
});

test('a registry with authentication gets the credentials of the file', async () => {
  await using own = await startRegistry('farm:secret');
  const name = `t-${newId().toLowerCase()}`;
  own.add(name, await layerOf([{ name: 'file', content: name }]));
  const image = `${own.address}/${name}`;
  made.push(image);
  await expect(aSource().ensure(image, open)).rejects.toThrow(/auth/);
  const path = join(folder, `${newId()}.json`);
  const auth = Buffer.from('farm:secret').toString('base64');
  writeFileSync(path, JSON.stringify({ auths: { [own.address]: { auth } } }));
  expect((await aSource([], [path]).ensure(image, open)).name).toBe(image);
});

test('the rootfs runtime pulls by the engine: from a mirror, few at once, recorded', async () => {
  const names = await Promise.all(Array.from({ length: 4 }, anImage));
  made.push(...names.map((name) => `nowhere.example/${name}`));
  const pulled = openPulledImages(join(folder, `${newId()}.json`));
  let now = 0;
  let most = 0;
  const gated = createFetch({ atOnce: 2, mirrors: readMirrors([`nowhere.example/=${registry.address}/`]) });
  const fetch: Fetch = (image, pull) =>
    gated(image, async (from, credentials) => {
      most = Math.max(most, ++now);
      return await pull(from, credentials).finally(() => now--);
    });
  const engineOf = new ImageExporter({ socketPath, fetch, pulled });
  const images = await Promise.all(names.map((name) => engineOf.pull(`nowhere.example/${name}`)));
  expect(most).toBe(2);
  expect(new Set(images.map((image) => image?.digest)).size).toBe(4);
  expect([...(await pulled.list()).keys()].sort()).toEqual(
    names.map((name) => `nowhere.example/${name}`).sort(),
  );
  await expect(engineOf.pull(`${registry.address}/nothing`)).rejects.toMatchObject({
    failureClass: 'image_not_found',
  });
});

test('only unused, unpinned images that the farm pulled are evicted', async () => {
  const names = await Promise.all(
    Array.from({ length: 4 }, async () => `${registry.address}/${await anImage()}`),
  );
  const [idle = '', pinned = '', used = '', foreign = ''] = names;
  const { pulled, ensure } = aSource();
  for (const name of names) await ensure(name, open);
  await pulled.drop([foreign]);
  const container = await docker.createContainer({
    Image: used,
    Cmd: ['true'],
    Labels: { swefarm_test: '1' },
  });
  try {
    // All images appear unused for a long time.
    const old = {
      ...pulled,
      list: async () => new Map([...(await pulled.list())].map(([n, e]) => [n, { ...e, used_at: 0 }])),
    };
    const deps = { docker, pulled: old, pins: [pinned], watermark: 0.5 };
    expect(await evictPulled({ ...deps, usedShare: async () => 0.4 })).toBe(0);
    expect(await evictPulled({ ...deps, usedShare: async () => 0.9 })).toBe(1);
  } finally {
    await container.remove({ force: true });
  }
  const missing = (name: string) => errorOf(docker.getImage(name).inspect());
  expect(
    (await Promise.all([idle, pinned, used, foreign].map(missing))).map((error) => error === null),
  ).toEqual([false, true, true, true]);
});
