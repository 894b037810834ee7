/** Requirements of every runtime for the end of a long command: its processes, its output, and the folder that it wrote. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readFolder } from '../src/folder.ts';
import type { Container } from '../src/runtime.ts';
import { NEVER, OPTIONS, type Subject, sh, start } from './subject.ts';

/** Starts a process in another session, without a parent, without an environment, and without open files of the command. */
const DAEMON = (name: string): string => `python3 -c '
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 9)
        os.execve("/bin/sleep", ["${name}", "600"], {})
    os._exit(0)'`;

export function leftoversContract(subject: () => Subject): void {
  let container: Container;
  beforeAll(async () => {
    container = await start(subject());
  });
  afterAll(() => container[Symbol.asyncDispose]());

  it.each([
    ['ends by itself', 'true', 60_000, false],
    ['reaches its time limit', 'sleep 600', 2_000, false],
    ['is aborted', 'sleep 600', 60_000, true],
  ])('of a command that %s are killed with its daemons', async (_how, last, timeoutMs, isAborted) => {
    const name = `daemon-${process.pid}`;
    const abort = new AbortController();
    if (isAborted) setTimeout(() => abort.abort(new Error('left')), 1_500);
    const script = `${DAEMON(name)}; setsid sh -c 'exec -a ${name} sleep 600' & nohup env -i sleep 600 >/dev/null & ${last}`;
    const options = { ...OPTIONS, cwd: container.workdir, timeoutMs, signal: abort.signal };
    await container.exec(['/bin/bash', '-c', script], options).catch(() => undefined);
    await container.killProcesses();
    const { output } = await sh(
      container,
      `exec 2>/dev/null; for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$p | grep '^${name} 600' || true; done`,
    );
    expect(output.toString()).toBe('');
    expect(await container.state()).toBe('running');
  });

  describe('a folder', () => {
    const read = (maxBytes: number, maxFiles: number, path = `${container.workdir}/out`) =>
      readFolder(container, path, { maxBytes, maxFiles }, NEVER);
    const LARGE_BYTES = 2_000_000;
    beforeAll(async () => {
      await sh(
        container,
        `mkdir -p out/deep; cd out; head -c ${LARGE_BYTES} /dev/urandom >large; printf 'a\\0b' >'deep/odd name
'; : >empty; ln -s /etc/passwd link; ln -s / deep/root; mkfifo pipe; ln -s out ../linked`,
      );
    });

    it('is read with its regular files, without following links', async () => {
      const found = await read(3_000_000, 10);
      expect(found?.isComplete).toBe(true);
      expect([...(found?.files.keys() ?? [])].sort()).toEqual(['deep/odd name\n', 'empty', 'large']);
      expect(found?.files.get('deep/odd name\n')).toEqual(Buffer.from('a\0b'));
      const large = await container.getFile(`${container.workdir}/out/large`, LARGE_BYTES, NEVER);
      expect(found?.files.get('large')).toEqual(large);
    });

    it('is read up to its limits', async () => {
      const small = await read(1_000, 10);
      expect([...(small?.files.keys() ?? [])].sort()).toEqual(['deep/odd name\n', 'empty']);
      expect(small?.isComplete).toBe(false);
      const few = await read(3_000_000, 2);
      expect([few?.files.size, few?.isComplete]).toEqual([2, false]);
    });

    it('that is missing, or a link, is null', async () => {
      expect(await read(10, 10, '/nowhere')).toBeNull();
      expect(await read(10, 10, `${container.workdir}/linked`)).toBeNull();
    });
  });
}
