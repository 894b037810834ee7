import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import tar from 'tar-stream';
import { beforeEach, expect, it } from 'vitest';
import { EMPTY_CONFIG } from './config.ts';
import { openImageStore, type Unpack } from './store.ts';
import { TreeWriter } from './tree.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('store');
});

const isRoot = process.getuid?.() === 0;
const NEVER = new AbortController().signal;
const DIGEST = `sha256:${'a'.repeat(64)}`;

const unpacking = (counted: { times: number }, then: () => Promise<void> = async () => undefined): Unpack => {
  return async (partial) => {
    counted.times++;
    writeFileSync(join(partial, 'tree', 'file'), 'x');
    await then();
    return { digest: DIGEST, config: EMPTY_CONFIG, bytes: 1 };
  };
};

it('unpacks once for all callers, and finds the image again', async () => {
  const counted = { times: 0 };
  const [one, two] = [await openImageStore(folder), await openImageStore(folder)];
  const unpack = unpacking(counted, () => sleep(50));
  const images = await Promise.all([one, two, one, two].map((store) => store.ensure(DIGEST, unpack, NEVER)));
  expect(counted.times).toBe(1);
  expect(new Set(images.map((image) => image.tree)).size).toBe(1);
  expect(existsSync(join(images[0]?.tree ?? '', 'file'))).toBe(true);
  expect(await (await openImageStore(folder)).find(DIGEST)).toEqual(images[0]);
});

it('shows only complete images, and leaves nothing of a failed one', async () => {
  const store = await openImageStore(folder);
  const failing = unpacking({ times: 0 }, async () => {
    expect(await store.find(DIGEST)).toBeNull();
    throw new Error('the stream broke');
  });
  await expect(store.ensure(DIGEST, failing, NEVER)).rejects.toMatchObject({ failureClass: 'image_pull' });
  expect(await store.find(DIGEST)).toBeNull();
  for (const name of ['images', 'partial', 'locks']) expect(readdirSync(join(store.root, name))).toEqual([]);
});

it('an incomplete image of the same digest is replaced', async () => {
  const store = await openImageStore(folder);
  const counted = { times: 0 };
  const { tree } = await store.ensure(DIGEST, unpacking(counted), NEVER);
  rmSync(join(tree, '../image.json'));
  rmSync(join(tree, 'file'));
  await store.ensure(DIGEST, unpacking(counted), NEVER);
  expect([counted.times, readdirSync(tree), (await store.find(DIGEST))?.tree]).toEqual([2, ['file'], tree]);
});

it.each(['sha256:x/../../y', 'sha256:', `sha512:${'a'.repeat(64)}`])('%s names no folder', async (digest) => {
  const store = await openImageStore(folder);
  await expect(store.find(digest)).rejects.toThrow('is no digest');
  await expect(store.drop(digest)).rejects.toThrow('is no digest');
});

it('a full disk is a failure of the node', async () => {
  const store = await openImageStore(folder);
  const full = unpacking({ times: 0 }, () =>
    Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })),
  );
  await expect(store.ensure(DIGEST, full, NEVER)).rejects.toMatchObject({ failureClass: 'node_disk' });
});

it('stores names', async () => {
  const store = await openImageStore(folder);
  expect(await store.digestOf('a/b:latest')).toBeNull();
  await store.name('a/b:latest', DIGEST);
  expect(await store.digestOf('a/b:latest')).toBe(DIGEST);
});

it('takes the lock of a dead process, removes its partial image, and waits for a living one', async () => {
  const store = await openImageStore(folder);
  const counted = { times: 0 };
  await store.ensure(DIGEST, unpacking(counted), NEVER);
  const lock = join(store.root, 'locks', hash('sha256', 'other'));
  const old = (Date.now() - 20_000) / 1000;

  writeFileSync(lock, JSON.stringify({ pid: 4_000_000, pid_started: '1' }));
  utimesSync(lock, old, old);
  await store.ensure('other', unpacking(counted), NEVER);
  expect(counted.times).toBe(2);

  writeFileSync(lock, JSON.stringify({ pid: 4_000_000, pid_started: '1' }));
  const waiting = store.ensure('other', unpacking(counted), AbortSignal.timeout(300));
  await expect(waiting).rejects.toThrow();
  expect(counted.times).toBe(2);

  writeFileSync(join(store.root, 'partial', '4000000-1-x'), '');
  await openImageStore(folder);
  expect(readdirSync(join(store.root, 'partial'))).toEqual([]);
});

it('other users cannot reach set-id programs of images, even in a folder that was open', async ({ skip }) => {
  chmodSync(folder, 0o755);
  const store = await openImageStore(folder);
  const image = await store.ensure(
    DIGEST,
    async (partial) => {
      const pack = tar.pack();
      pack.entry({ name: 'bin/id', mode: 0o4755, uid: 0, gid: 0 }, readFileSync('/usr/bin/id'));
      pack.finalize();
      await new TreeWriter(join(partial, 'tree'), isRoot).layer(pack as unknown as Readable);
      return { digest: DIGEST, config: EMPTY_CONFIG, bytes: 1 };
    },
    NEVER,
  );
  const modes = () =>
    [store.root, join(folder, 'v1')].filter(existsSync).map((path) => statSync(path).mode & 0o777);
  expect(new Set(modes())).toEqual(new Set([0o700]));
  chmodSync(store.root, 0o755);
  await openImageStore(folder);
  expect(new Set(modes())).toEqual(new Set([0o700]));
  // With the original owner, every user with access would run the program as root.
  const program = join(image.tree, 'bin/id');
  expect(statSync(program).mode & 0o7777).toBe(isRoot ? 0o4755 : 0o755);
  skip(!isRoot, 'the program was not tried: only root can become another user');
  const { error, stdout } = spawnSync(program, ['-u'], { uid: 65534, gid: 65534, encoding: 'utf8' });
  expect([(error as NodeJS.ErrnoException | undefined)?.code, stdout ?? null]).toEqual(['EACCES', null]);
});

it('a truncated record is no image; partial images of other namespaces stay', async () => {
  const store = await openImageStore(folder);
  const counted = { times: 0 };
  const { tree } = await store.ensure(DIGEST, unpacking(counted), NEVER);
  await store.name('a/b:latest', DIGEST);
  writeFileSync(join(tree, '../image.json'), Buffer.alloc(200));
  const [name = ''] = readdirSync(join(store.root, 'names'));
  writeFileSync(join(store.root, 'names', name), Buffer.alloc(50));
  expect([await store.digestOf('a/b:latest'), await store.usage(), await store.list()]).toEqual([
    null,
    { count: 0, bytes: 0 },
    [],
  ]);
  await store.ensure(DIGEST, unpacking(counted), NEVER);
  expect(counted.times).toBe(2);

  const foreign = '4000000-1@1-x';
  writeFileSync(join(store.root, 'partial', foreign), '');
  await openImageStore(folder);
  expect(readdirSync(join(store.root, 'partial'))).toEqual([foreign]);
});
