/** Requirements of every isolating runtime for the changed files of an ended container. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Change, FileChanges } from '../src/filechanges.ts';
import type { Container } from '../src/runtime.ts';
import { NEVER, OPTIONS, type Subject, sh, start } from './subject.ts';

const SCRIPT = '/script';
const CONTENT = Buffer.from('one\n');

/** Changes the image: a link replaces a folder; files are written, removed, and rewritten unchanged; links and folders are made. */
const CHANGES = `
rmdir /var/tmp && ln -s /tmp /var/tmp
printf x >>/usr/bin/nohup; rm /usr/bin/nl; mv /usr/bin/nproc /usr/bin/renamed
cat /usr/bin/od >/tmp/od; touch -r /usr/bin/od /tmp/od; cat /tmp/od >/usr/bin/od; touch -r /tmp/od /usr/bin/od
mkdir -p "/opt/odd \\"},{\\"Path\\":\\"/etc" && echo deep >"/opt/odd \\"},{\\"Path\\":\\"/etc/é"
cat ${SCRIPT} >/tmp/script; touch -r ${SCRIPT} /tmp/script
echo other >${SCRIPT}; cat /tmp/script >${SCRIPT}; touch -r /tmp/script ${SCRIPT}
ln -s ${SCRIPT} /etc/link
mkdir -p /opt/real/below && echo found >/opt/real/below/outcomes && ln -s real/below /opt/relative && ln -s /opt/relative /opt/absolute
ln -s /opt/out/../circle /opt/circle; ln -s /opt/real/below/outcomes /opt/real/file; mkfifo /opt/real/pipe; chmod 0 /opt/real/below`;

export function remainsContract(subject: () => Subject): void {
  let container: Container;
  let remains: FileChanges;
  let seen: Map<string, Change>;
  let before: string | null | undefined;

  beforeAll(async () => {
    container = await start(subject());
    await container.putFiles([{ path: SCRIPT, content: CONTENT }], NEVER);
    before = await container.fileStamp?.(SCRIPT);
    expect(await container.fileStamp?.(SCRIPT)).toBe(before);
    await sh(container, CHANGES);
    // These processes are alive at the end, and would change the reported files.
    await sh(
      container,
      'setsid sh -c "while :; do echo more >>/etc/more; rm -f /etc/link; done" >/dev/null 2>&1 &',
    );
    await sh(
      container,
      'while [ ! -e /etc/more ] || [ -e /etc/link ]; do sleep 0.05; done; ln -s /x /etc/other',
    );
    remains = (await container.end?.(NEVER)) as FileChanges;
    seen = await changes();
  });
  afterAll(() => container[Symbol.asyncDispose]());

  async function changes(): Promise<Map<string, Change>> {
    const all = new Map<string, Change>();
    const visit = (change: Change) => void all.set(change.path, change);
    await remains.changes({ entersFolder: () => true, visit }, NEVER);
    return all;
  }

  it('reports files that were made, removed or written, even with the same bytes and times', () => {
    const written = ['/usr/bin/nohup', '/usr/bin/od', '/usr/bin/renamed', '/var/tmp', '/etc/other', SCRIPT];
    for (const path of written) expect.soft(seen.get(path), path).toEqual({ path, removed: false });
    for (const path of ['/usr/bin/nl', '/usr/bin/nproc'])
      expect.soft(seen.get(path), path).toEqual({ path, removed: true });
    expect.soft(seen.has('/opt/odd "},{"Path":"/etc/é')).toBe(true);
    for (const path of ['/usr/bin/env', '/etc/passwd', '/etc/link'])
      expect.soft(seen.has(path), path).toBe(false);
  });

  it('distinguishes folders from entries that replace them', async () => {
    expect(seen.get('/usr/bin')).toEqual({ path: '/usr/bin', removed: false });
    expect(await remains.kindOf('/usr/bin')).toBe('folder');
    expect(await remains.kindOf('/var/tmp')).toBe('other');
    expect(await remains.kindOf('/usr/bin/od')).toBe('file');
    expect(await remains.kindOf('/usr/bin/nl')).toBe('missing');
  });

  it('reads files without following links', async () => {
    expect((await remains.getFile(SCRIPT, 100, NEVER))?.toString()).toBe('one\n');
    expect(await remains.getFile('/etc/other', 100, NEVER)).toBeNull();
    expect(await remains.getFile('/usr/bin', 100, NEVER)).toBeNull();
    await expect(remains.getFile(SCRIPT, 3, NEVER)).rejects.toMatchObject({ code: 'file_too_large' });
  });

  it('reads files behind links inside, for any modes of their folders', async () => {
    const read = async (path: string) => (await remains.getLinkedFile(path, 100, NEVER))?.toString() ?? null;
    for (const folder of ['/opt/real/below', '/opt/relative', '/opt/absolute', '/opt/../opt/absolute'])
      expect.soft(await read(`${folder}/outcomes`), folder).toBe('found\n');
    for (const path of ['/opt/circle/outcomes', '/opt/real/file', '/opt/real/pipe', '/opt/none/outcomes'])
      expect.soft(await read(path), path).toBeNull();
    await expect(remains.getLinkedFile('/opt/absolute/outcomes', 3, NEVER)).rejects.toMatchObject({
      code: 'file_too_large',
    });
  });

  it('reports a file that was restored, where its stamp is visible', async () => {
    const after = await container.fileStamp?.(SCRIPT);
    if (before !== null) expect(after).not.toBe(before);
    expect(after).toBe(await container.fileStamp?.(SCRIPT));
  });

  it('leaves no process and allows no new one', async () => {
    expect(await container.state()).not.toBe('running');
    const command = container.exec(['/bin/sh', '-c', 'echo x'], OPTIONS);
    await expect(command).rejects.toMatchObject({ failureClass: 'sandbox_lost' });
    expect(await changes()).toEqual(seen);
    expect(await container.end?.(NEVER)).toBeDefined();
  });

  it('replaces folders and lists changes without programs of the container', async (here) => {
    await using running = await start(subject());
    if (!running.replaceFolders) return here.skip('the runtime cannot write from outside');
    await sh(
      running,
      `mkdir -p /tmp/a/verifier /tmp/t; echo old | tee /tmp/a/verifier/kept /tmp/t/kept; rm -rf /logs /tests; ln -s /tmp/a /logs; ln -s /tmp/t /tests
for name in rm mkdir chmod cat; do mv /bin/$name /bin/$name.old 2>/dev/null || mv /usr/bin/$name /usr/bin/$name.old; done`,
    );
    await running.killProcesses();
    const removed: string[] = [];
    const visit = ({ path, removed: isRemoved }: Change) => void (isRemoved && removed.push(path));
    await (await running.changes?.())?.changes({ entersFolder: () => true, visit }, NEVER);
    expect(removed).toContainEqual(expect.stringMatching(/bin\/chmod$/));
    const folders = [
      { path: '/tests', mode: 0o755 },
      { path: '/logs/verifier', mode: 0o777 },
    ];
    const files = [
      { path: '/tests/test.sh', content: Buffer.from('echo one\n'), mode: 0o755 },
      { path: '/tests/below/big', content: Buffer.alloc(200_000, 120) },
    ];
    await running.replaceFolders(folders, files, NEVER);
    await running.replaceFolders(folders, files, NEVER);
    const look =
      'stat -c "%n %a %s %u" /tests/* /tests/below/big; stat -c "%n %a" /logs /logs/verifier; ls /logs/verifier; ls /tmp/t';
    expect((await sh(running, look)).output.toString().trim().split('\n')).toEqual([
      expect.stringMatching(/^\/tests\/below 755 /),
      '/tests/test.sh 755 9 0',
      '/tests/below/big 644 200000 0',
      ...['/logs 755', '/logs/verifier 777', 'kept'],
    ]);
  });
}
