/** Requirements of every isolating runtime for mounted folders of this machine. */
import { chmod, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, it } from 'vitest';
import { printed, type Subject, start } from './subject.ts';

const TARGETS = ['/opt/swefarm/agents/one', '/opt/swefarm/agents/two'] as const;

/** A script that tries to change a mounted folder, and prints what succeeds. */
const CHANGES = `cd ${TARGETS[0]}
for change in 'echo x >file' 'echo x >>file' 'echo x >new' 'rm -f file' 'mv file moved' 'chmod 777 file' 'chown 1:1 file' 'touch file' \
  'ln file link' 'ln -s file link' 'mkdir made' 'rmdir folder' 'mknod device c 1 3' 'truncate -s 0 file' 'rmdir ${TARGETS[0]}' \
  'mount -o remount,rw ${TARGETS[0]}' 'umount ${TARGETS[0]}' 'cp /bin/true file'; do
  (eval "$change") 2>/dev/null && echo "$change"
done; true`;

export function mountsContract(subject: () => Subject): void {
  const source = temporaryFolder('mounted');
  const mounts = TARGETS.map((target) => ({ source, target }));
  beforeAll(async () => {
    await chmod(source, 0o755);
    await mkdir(join(source, 'folder'));
    await writeFile(join(source, 'file'), 'content');
    await cp('/usr/bin/touch', join(source, 'touch'));
    await chmod(join(source, 'touch'), 0o4755);
  });

  it('are readable for every user at paths that the image lacks', async () => {
    await using container = await start(subject(), { mounts });
    const read = `python3 -c 'import os; os.setuid(4321); print(open("${TARGETS[1]}/file").read())'; ls ${TARGETS[0]}`;
    expect(await printed(container, read)).toBe('content\nfile\nfolder\ntouch\n');
  });

  it('cannot be changed by root inside, and the next container sees the same', async () => {
    await using container = await start(subject(), { mounts });
    expect(await printed(container, CHANGES)).toBe('');
    await using next = await start(subject(), { mounts });
    expect(await printed(next, `cat ${TARGETS[0]}/file; ls ${TARGETS[0]}`)).toBe(
      'contentfile\nfolder\ntouch\n',
    );
    expect(await readFile(join(source, 'file'), 'utf8')).toBe('content');
    expect(await readdir(source)).toEqual(['file', 'folder', 'touch']);
  });

  it('give no privileges by their set-user-id programs', async () => {
    await using container = await start(subject(), { mounts });
    const script = `chmod 777 /tmp; python3 -c 'import os; os.setuid(4321); os.execv("${TARGETS[0]}/touch", ["touch", "/tmp/made"])'; stat -c %u /tmp/made`;
    expect(await printed(container, script)).toBe('4321\n');
  });

  it.each([
    ['a missing folder', { source: '/nowhere/folder', target: '/opt/x' }],
    ['a relative path', { source: 'folder', target: '/opt/x' }],
    ['a target with dots', { source: '/usr', target: '/opt/../etc' }],
    ['a path with a separator of options', { source: '/usr', target: '/opt/x:rw' }],
  ])('%s is refused', async (_what, mount) => {
    await expect(start(subject(), { mounts: [mount] })).rejects.toMatchObject({
      failureClass: 'sandbox_refused',
      message: expect.stringContaining(
        'x' in mount ? '' : mount.source === '/usr' ? mount.target : mount.source,
      ),
    });
    await expect(readdir('/nowhere')).rejects.toThrow();
  });
}
