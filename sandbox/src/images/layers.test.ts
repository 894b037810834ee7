import { hash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, it } from 'vitest';
import { layerOf } from '../../test/images/layer.ts';
import { type LayeredImage, readDockerArchive, readOciLayout } from './layers.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('layers');
});

const digestOf = (bytes: Buffer): string => `sha256:${hash('sha256', bytes)}`;
const CONFIG = Buffer.from(
  JSON.stringify({ config: { Env: ['PATH=/x', 'EMPTY=', 'EQ=a=b'], WorkingDir: '/testbed', User: null } }),
);

async function bytesOf(image: LayeredImage): Promise<Buffer[]> {
  return Promise.all(image.layers.map(async (open) => buffer(await open())));
}

async function dockerArchive(): Promise<{ archive: Buffer; layers: Buffer[] }> {
  const layers = await Promise.all(['one', 'two'].map((content) => layerOf([{ name: 'file', content }])));
  const archive = await layerOf([
    { name: 'bbb/layer.tar', content: layers[1]?.toString('latin1') ?? '' },
    { name: 'aaa/layer.tar', content: layers[0]?.toString('latin1') ?? '' },
    { name: 'ccc/layer.tar', type: 'symlink', linkname: '../aaa/layer.tar' },
    { name: 'abc.json', content: CONFIG.toString() },
    {
      name: 'manifest.json',
      content: JSON.stringify([
        { Config: 'abc.json', Layers: ['aaa/layer.tar', 'bbb/layer.tar', 'ccc/layer.tar'] },
      ]),
    },
  ]);
  return { archive, layers };
}

it.each(['plain', 'compressed'])(
  'a %s docker-archive: configuration, and layers in the order of the manifest',
  async (how) => {
    const { archive, layers } = await dockerArchive();
    const file = join(folder, 'image.tar');
    writeFileSync(file, how === 'plain' ? archive : gzipSync(archive));
    const image = await readDockerArchive(file, join(folder, 'spool'));
    expect(image.digest).toBe(digestOf(CONFIG));
    expect(image.config).toEqual({
      env: { PATH: '/x', EMPTY: '', EQ: 'a=b' },
      workdir: '/testbed',
      user: '',
    });
    expect(await bytesOf(image)).toEqual([layers[0], layers[1], layers[0]]);
  },
);

it('a tar that is no docker-archive throws', async () => {
  writeFileSync(join(folder, 'x.tar'), await layerOf([{ name: 'file', content: '' }]));
  await expect(readDockerArchive(join(folder, 'x.tar'), join(folder, 'spool'))).rejects.toThrow(
    'no manifest.json',
  );
});

function ociLayout(blobs: Buffer[], damage = false): { layout: string } {
  const layout = join(folder, 'oci');
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
  const put = (bytes: Buffer): string => {
    writeFileSync(join(layout, 'blobs/sha256', digestOf(bytes).slice(7)), bytes);
    return digestOf(bytes);
  };
  const layers = blobs.map((blob) => ({ digest: put(blob) }));
  const manifest = put(Buffer.from(JSON.stringify({ config: { digest: put(CONFIG) }, layers })));
  const platform = { os: 'linux', architecture: process.arch === 'x64' ? 'amd64' : process.arch };
  const other = { digest: digestOf(Buffer.from('other')), platform: { os: 'linux', architecture: 's390x' } };
  const nested = put(Buffer.from(JSON.stringify({ manifests: [other, { digest: manifest, platform }] })));
  const annotations = { 'org.opencontainers.image.ref.name': 'v1' };
  writeFileSync(join(layout, 'index.json'), JSON.stringify({ manifests: [{ digest: nested, annotations }] }));
  if (damage) writeFileSync(join(layout, 'blobs/sha256', (layers[0]?.digest ?? '').slice(7)), blobs[1] ?? '');
  return { layout };
}

it('reads OCI layouts: nested index, platform, name, and layers of any compression', async () => {
  const layers = await Promise.all(
    ['one', 'two', 'three'].map((content) => layerOf([{ name: 'file', content }])),
  );
  const [one, two, three] = layers as [Buffer, Buffer, Buffer];
  const { layout } = ociLayout([one, gzipSync(two), zstdCompressSync(three)]);
  const image = readOciLayout(layout, 'v1');
  expect(image.digest).toBe(digestOf(CONFIG));
  expect(image.config.workdir).toBe('/testbed');
  expect(await bytesOf(image)).toEqual(layers);
  expect(() => readOciLayout(layout, 'v2')).toThrow('named v2');
});

it('a damaged layer throws', async () => {
  const layers = await Promise.all(['one', 'two'].map((content) => layerOf([{ name: 'file', content }])));
  const { layout } = ociLayout(layers, true);
  await expect(bytesOf(readOciLayout(layout, null))).rejects.toThrow('digest');
});
