import { hash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { constants, createZstdDecompress, gzipSync, zstdCompressSync } from 'node:zlib';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, it } from 'vitest';
import { layerOf } from '../../test/images/layer.ts';
import { type LayeredImage, openLayer, readDockerArchive, readOciLayout } from './layers.ts';
import { cutFrames } from './zstdframes.ts';

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

/** Compresses content so that its frames have blocks of every kind, with checksums and with sizes of every width. */
function zstdFrames(content: Buffer): Buffer[] {
  const checksummed = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
  const parts = [0, 1, 300, 70_000, 600_000, content.length].map((end, at, ends) =>
    content.subarray(at === 0 ? 0 : ends[at - 1], end),
  );
  return parts.map((part, at) => zstdCompressSync(part, at % 2 ? checksummed : {}));
}

it('reads zstd of several frames, with skippable frames, at any boundary of chunks', async () => {
  const random = randomBytes(500_000).toString('latin1');
  const content = await layerOf([{ name: 'file', content: `${random}${'0'.repeat(400_000)}` }]);
  const frames = zstdFrames(content);
  const skippable = Buffer.concat([Buffer.from('5f2a4d1805000000', 'hex'), Buffer.from('abcde')]);
  const file = join(folder, 'layer');
  for (const parts of [
    frames,
    [skippable, ...frames, skippable],
    frames.flatMap((one) => [one, skippable]),
  ]) {
    writeFileSync(file, Buffer.concat(parts));
    expect(await buffer(await openLayer(file, digestOf(content)))).toEqual(content);
  }
  const all = Buffer.concat([skippable, ...zstdFrames(content.subarray(0, 2_000))]);
  const whole = content.subarray(0, 2_000);
  for (const size of [1, 2, 3, 5, 7, 64]) {
    const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
      all.subarray(at * size, (at + 1) * size),
    );
    expect(await buffer(Readable.from(chunks).pipe(cutFrames()).pipe(createZstdDecompress()))).toEqual(whole);
  }
});

it.each([
  ['a truncated frame', (frame: Buffer) => frame.subarray(0, -2)],
  ['text after a frame', (frame: Buffer) => Buffer.concat([frame, Buffer.from('some text')])],
])('%s throws', async (_, change) => {
  const content = await layerOf([{ name: 'file', content: 'x'.repeat(50_000) }]);
  writeFileSync(join(folder, 'layer'), change(zstdCompressSync(content)));
  await expect(buffer(await openLayer(join(folder, 'layer'), digestOf(content)))).rejects.toThrow();
});
