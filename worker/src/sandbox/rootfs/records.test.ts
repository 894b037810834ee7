import { chown, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { identify } from '../../identity.ts';
import type { Owner } from '../runtime.ts';
import { readRecords, removeNameless, writeRecord } from './records.ts';

const { pid, pid_started } = identify('farm', 'worker', 'node');
const owner: Owner = { farm: 'farm', worker: 'worker', pid, pid_started, rollout_id: 'r.i.0', attempt: 1 };
/** No process has had this one. */
const DEAD = `${2 ** 22 + 1}-1@${pid_started.split('@')[1]}`;

async function scratch(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-records-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test('a sandbox appears with its record, and nothing of its making stays', async () => {
  const folder = await scratch();
  await writeRecord(join(folder, 'rootfs-a'), { owner, cgroups: [] }, [join(folder, 'rootfs-a', 'upper')]);
  expect(await readdir(folder)).toEqual(['rootfs-a']);
  expect(await readRecords(folder, 'rootfs')).toMatchObject([{ id: 'rootfs-a', owner }]);
});

test('what no record names goes: half made and half removed by the dead; the living keep theirs', async () => {
  const folder = await scratch();
  await writeRecord(join(folder, 'rootfs-kept'), { owner, cgroups: [] }, []);
  await mkdir(join(folder, 'rootfs-halfgone', 'upper', 'deep'), { recursive: true });
  await mkdir(join(folder, `making-${DEAD}-rootfs-b`));
  await writeFile(join(folder, `making-${DEAD}-rootfs-b`, 'owner.json'), '');
  await mkdir(join(folder, `making-${pid}-${pid_started}-rootfs-c`));
  await mkdir(join(folder, `runtime-${DEAD}-x`));
  await mkdir(join(folder, 'somebody-elses'));
  await removeNameless(folder);
  expect((await readdir(folder)).sort()).toEqual([
    `making-${pid}-${pid_started}-rootfs-c`,
    'rootfs-kept',
    'somebody-elses',
  ]);
});

test('in a folder for everybody, what somebody else put there under such a name is neither read nor removed', async ({
  skip,
}) => {
  skip(process.getuid?.() !== 0, 'only root can make what belongs to somebody else');
  const folder = await scratch();
  await writeRecord(join(folder, 'rootfs-ours'), { owner, cgroups: [] }, []);
  await writeRecord(join(folder, 'rootfs-planted'), { owner, cgroups: ['/sys/fs/cgroup/other'] }, []);
  await mkdir(join(folder, 'rootfs-empty'));
  for (const name of ['rootfs-planted', 'rootfs-empty']) await chown(join(folder, name), 54_321, 54_321);
  expect((await readRecords(folder, 'rootfs')).map(({ id }) => id)).toEqual(['rootfs-ours']);
  await removeNameless(folder);
  expect((await readdir(folder)).sort()).toEqual(['rootfs-empty', 'rootfs-ours', 'rootfs-planted']);
});
