import { chown, mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ownStartMark } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import type { Owner } from '../runtime.ts';
import { readRecords, removeUnowned, writeRecord } from './records.ts';

const [pid, pid_started] = [process.pid, ownStartMark()];
const owner: Owner = { farm: 'farm', worker: 'worker', pid, pid_started, rollout_id: 'r.i.0', attempt: 1 };
/** Mark of a process that does not exist, as in names of folders. */
const DEAD = `${2 ** 22 + 1}-1@${pid_started.split('@')[1]}`;

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('records');
});

test('a sandbox appears with its record, without leftovers of its creation', async () => {
  await writeRecord(join(folder, 'rootfs-a'), { owner, cgroups: [] }, [join(folder, 'rootfs-a', 'upper')]);
  expect(await readdir(folder)).toEqual(['rootfs-a']);
  expect(await readRecords(folder, 'rootfs')).toMatchObject([{ id: 'rootfs-a', owner }]);
});

test('entries of dead processes without a record are removed, those of living ones stay', async () => {
  await writeRecord(join(folder, 'rootfs-kept'), { owner, cgroups: [] }, []);
  await mkdir(join(folder, 'rootfs-halfgone', 'upper', 'deep'), { recursive: true });
  await mkdir(join(folder, `making-${DEAD}-rootfs-b`));
  await writeFile(join(folder, `making-${DEAD}-rootfs-b`, 'owner.json'), '');
  await mkdir(join(folder, `making-${pid}-${pid_started}-rootfs-c`));
  await mkdir(join(folder, `runtime-${DEAD}-x`));
  await mkdir(join(folder, 'somebody-elses'));
  await removeUnowned(folder);
  expect((await readdir(folder)).sort()).toEqual([
    `making-${pid}-${pid_started}-rootfs-c`,
    'rootfs-kept',
    'somebody-elses',
  ]);
});

test('entries of other users in a shared folder are neither read nor removed', async ({ skip }) => {
  skip(process.getuid?.() !== 0, 'only root can make what belongs to somebody else');
  await writeRecord(join(folder, 'rootfs-ours'), { owner, cgroups: [] }, []);
  await writeRecord(join(folder, 'rootfs-planted'), { owner, cgroups: ['/sys/fs/cgroup/other'] }, []);
  await mkdir(join(folder, 'rootfs-empty'));
  for (const name of ['rootfs-planted', 'rootfs-empty']) await chown(join(folder, name), 54_321, 54_321);
  expect((await readRecords(folder, 'rootfs')).map(({ id }) => id)).toEqual(['rootfs-ours']);
  await removeUnowned(folder);
  expect((await readdir(folder)).sort()).toEqual(['rootfs-empty', 'rootfs-ours', 'rootfs-planted']);
});

test('a folder of another process namespace stays until it is untouched for hours', async () => {
  // Names of a worker in another container that shares the folder: no process here has its pid.
  const names = ['runtime', 'making'].map((kind) => `${kind}-4000000-1@1-rootfs-x`);
  for (const name of names) await mkdir(join(folder, name));
  await removeUnowned(folder);
  expect((await readdir(folder)).sort()).toEqual([...names].sort());
  const old = (Date.now() - 3 * 3_600_000) / 1000;
  for (const name of names) await utimes(join(folder, name), old, old);
  await removeUnowned(folder);
  expect(await readdir(folder)).toEqual([]);
});

test('host records of older workers are read; an unreadable record hides only its own', async () => {
  await mkdir(join(folder, 'host-old'));
  await writeFile(join(folder, 'host-old', 'owner.json'), JSON.stringify({ owner, started_at: 1 }));
  await mkdir(join(folder, 'host-broken', 'owner.json'), { recursive: true });
  expect(await readRecords(folder, 'host')).toEqual([{ id: 'host-old', owner }]);
});

test('a truncated record is logged, and removed after ten minutes', async () => {
  await writeRecord(join(folder, 'rootfs-whole'), { owner, cgroups: [] }, []);
  await mkdir(join(folder, 'rootfs-torn'));
  const record = join(folder, 'rootfs-torn', 'owner.json');
  await writeFile(record, Buffer.alloc(120));
  expect((await readRecords(folder, 'rootfs')).map(({ id }) => id)).toEqual(['rootfs-whole']);
  const warnings: unknown[] = [];
  const log = { warn: (fields: Record<string, unknown>) => void warnings.push(fields) };
  await removeUnowned(folder, log);
  expect(await readdir(folder)).toContain('rootfs-torn');
  const old = (Date.now() - 3_600_000) / 1000;
  await utimes(record, old, old);
  await removeUnowned(folder, log);
  expect(await readdir(folder)).toEqual(['rootfs-whole']);
  expect(warnings).toEqual([{ folder: join(folder, 'rootfs-torn') }]);
});
