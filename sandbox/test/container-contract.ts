/** Requirements of every runtime for execs, files, isolation and removal. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Container } from '../src/runtime.ts';
import { copyIn, copyOut } from '../src/trees/copy.ts';
import {
  type ContractOptions,
  countProcesses,
  describeIf,
  FARM,
  LIMITS,
  NEVER,
  OPTIONS,
  PATH,
  type Subject,
  sh,
  start,
  TEST_IMAGE_MARKER,
} from './subject.ts';

/** A limit far below the waits that must not happen, and far above the delays of a busy machine. */
const PROMPT_MS = 90_000;

export function containerContract(subject: () => Subject, options: ContractOptions): void {
  let container: Container;
  const exec = (script: string, changes: object = {}) =>
    container.exec(['/bin/sh', '-c', script], {
      env: { PATH, ONLY: '1' },
      cwd: container.workdir,
      timeoutMs: 60_000,
      maxOutputBytes: 20_000,
      signal: NEVER,
      ...changes,
    });
  const ours = async () => (await subject().runtime.listOwned()).filter(({ owner }) => owner.farm === FARM);
  beforeAll(async () => {
    container = await start(subject(), { env: { FROM_SPEC: 'yes' } });
  });
  afterAll(async () => {
    await container[Symbol.asyncDispose]();
  });

  describe('exec', () => {
    it.each([0, 1, 42, 255])('exit code %i comes from the runtime', async (code) => {
      expect(await exec(`echo "exit 0"; exit ${code}`)).toMatchObject({ exitCode: code, timedOut: false });
    });

    it('merges stdout and stderr in order and counts bytes', async () => {
      const output = Buffer.from('a\nb\nc\n');
      expect(await exec('echo a; echo b >&2; echo c')).toMatchObject({
        ...{ output, outputBytes: 6, truncated: false },
      });
    });

    it('has exactly the given environment and working directory', async () => {
      const lines = (await exec('/usr/bin/env; pwd')).output.toString().trim().split('\n');
      expect(lines.at(-1)).toBe(container.workdir);
      const names = lines.slice(0, -1).map((line) => line.split('=')[0]);
      expect(
        names.filter((name) => !/^(SWEFARM_\w+|PATH|ONLY|PWD|OLDPWD|SHLVL|_)$/.test(name ?? '')),
      ).toEqual([]);
    });

    it('has the container environment when none is given', async () => {
      const result = await exec('echo "$FROM_SPEC"', { env: undefined });
      expect(result.output.toString()).toBe('yes\n');
    });

    it('passes stdin completely', async () => {
      const stdin = Buffer.alloc(300_000, 'é');
      const result = await exec('wc -c; exit 3', { stdin });
      expect(result.output.toString().trim()).toBe('300000');
      expect(result.exitCode).toBe(3);
    });

    it('limits the stored part of a large output', async () => {
      const result = await exec('echo HEAD; head -c 50000000 /dev/zero; echo TAIL', {
        maxOutputBytes: 1_000,
      });
      expect(result).toMatchObject({ exitCode: 0, outputBytes: 50_000_010, truncated: true });
      expect(result.output.length).toBe(1_000);
      expect(result.output.subarray(0, 5).toString()).toBe('HEAD\n');
      expect(result.output.subarray(-5).toString()).toBe('TAIL\n');
    });

    it('is killed at its time limit with all its processes', async () => {
      const startedAt = performance.now();
      const result = await exec('echo started; setsid sleep 55551 & sleep 55552', { timeoutMs: 3_000 });
      expect(result).toMatchObject({ exitCode: null, timedOut: true });
      expect(result.output.toString()).toBe('started\n');
      expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
      expect(
        (
          await exec('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " | grep -c "sleep 5555[0-9]"')
        ).output.toString(),
      ).toBe('0\n');
    });

    it('is killed when the caller aborts', async () => {
      const abort = new AbortController();
      setTimeout(() => abort.abort(new Error('left')), 200);
      await expect(exec('sleep 600', { timeoutMs: 600_000, signal: abort.signal })).rejects.toThrow('left');
    });

    it('does not wait for a child with its output open', async () => {
      const startedAt = performance.now();
      expect((await exec('sleep 600 & echo done', { timeoutMs: 600_000 })).output.toString()).toBe('done\n');
      expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
    });
  });

  describe('files', () => {
    it('are written with folders and modes, and read back', async () => {
      const path = `${container.workdir}/new/deep/file.bin`;
      const content = Buffer.from([0, 255, 10, 0, 128]);
      await container.putFiles(
        [
          { path, content },
          { path: `${container.workdir}/run.sh`, content: Buffer.from('#!/bin/sh\necho ran\n'), mode: 0o755 },
        ],
        NEVER,
      );
      expect(await container.getFile(path, 100, NEVER)).toEqual(content);
      expect((await exec('./run.sh')).output.toString()).toBe('ran\n');
    });

    it('of every kind are written together, with their modes, over existing entries', async () => {
      const at = (name: string): string => `${container.workdir}/put/${name}`;
      await exec('mkdir put; echo kept > kept; ln -s ../kept put/link; echo old > put/old; chmod 0 put/old');
      const contents: Record<string, Buffer> = {
        link: Buffer.from('-n %s \\\\ $(id) \u0001\u007f\u00e9\u20ac'),
        old: Buffer.from('no newline'),
        empty: Buffer.alloc(0),
        large: Buffer.from('x'.repeat(300_000)),
        binary: Buffer.from([0, 255, 128, 10]),
      };
      const files = Object.entries(contents).map(([name, content]) => ({ path: at(name), content }));
      await container.putFiles(
        [...files, { path: at('secret'), content: Buffer.from('s'), mode: 0o600 }],
        NEVER,
      );
      for (const [name, content] of Object.entries(contents))
        expect(await container.getFile(at(name), 1_000_000, NEVER)).toEqual(content);
      expect(await container.getFile(`${container.workdir}/kept`, 100, NEVER)).toEqual(Buffer.from('kept\n'));
      const modes = await exec('cd put && stat -c "%n %a %F" link old large secret');
      const file = 'regular file';
      expect(modes.output.toString()).toBe(
        `link 644 ${file}\nold 644 ${file}\nlarge 644 ${file}\nsecret 600 ${file}\n`,
      );
    });

    it('renames and recreates folders of the image', async () => {
      if (!options.isolated) return;
      // pip does both when it reinstalls a package of the image; an overlay that cannot mark folders answers EIO.
      const script = `cd "$(dirname "$(python3 -c 'import json; print(json.__path__[0])')")"
        touch json/new && mv json json.old && mkdir json && ls -A json && rm -rf json.old json && mkdir json && ls -A json`;
      await using other = await start(subject());
      expect((await sh(other, script)).output.toString()).toBe('');
    });

    it('and folders are copied to another place, with modes, empty folders and links', async () => {
      if (!options.isolated) return;
      await exec(
        'mkdir -p tree/deep/empty; echo a > tree/run; chmod 755 tree/run; chmod 2750 tree/deep/empty; echo b > tree/deep/shared; chmod 666 tree/deep/shared; ln -s ../run tree/deep/link; ln -s /etc tree/out; mkfifo tree/pipe; echo o > tree/x.o; rm -rf /tmp/copy; mkdir -p /tmp/copy/old',
      );
      const limits = { bytes: 1_000, entries: 20, timeoutMs: 60_000 };
      const path = `${container.workdir}/tree`;
      const tree = await copyOut(container, { path, exclude: ['*.o'] }, limits, NEVER);
      expect(tree?.refused).toHaveLength(2);
      await copyIn(container, '/tmp/copy', { folder: true, entries: tree?.entries ?? [] }, NEVER);
      expect(
        (
          await exec(
            'cd /tmp/copy && find . | sort && cat deep/link && stat -c %a run deep deep/empty deep/shared',
          )
        ).output.toString(),
      ).toBe('.\n./deep\n./deep/empty\n./deep/link\n./deep/shared\n./run\na\n755\n755\n750\n666\n');
      const one = await copyOut(container, { path: `${path}/run`, exclude: [] }, limits, NEVER);
      await copyIn(container, '/tmp/copy/new/file', { folder: false, entries: one?.entries ?? [] }, NEVER);
      expect((await container.getFile('/tmp/copy/new/file', 100, NEVER))?.toString()).toBe('a\n');
      expect(await copyOut(container, { path: `${path}/none`, exclude: [] }, limits, NEVER)).toBeNull();
      await exec('truncate -s 1T tree/x.o');
      const large = copyOut(container, { path, exclude: [] }, limits, NEVER);
      await expect(large).rejects.toMatchObject({ code: 'file_too_large' });
    });

    it('and 10,000 folders and 2,000 links are written in time', async () => {
      if (!options.isolated) return;
      const folders = Array.from({ length: 10_000 }, (_, at) => ({ path: `d${at}` }));
      const links = folders.slice(0, 2_000).map(({ path }) => ({ path, link: 'a' }));
      for (const entries of [links, folders])
        await copyIn(container, '/tmp/many', { folder: true, entries }, NEVER);
      expect((await exec('ls /tmp/many | wc -l')).output.toString().trim()).toBe('10000');
    }, 120_000);

    it('of 5 MB are read', async () => {
      await sh(container, 'head -c 5000000 /dev/zero > large');
      expect((await container.getFile(`${container.workdir}/large`, 6_000_000, NEVER))?.length).toBe(
        5_000_000,
      );
      await expect(container.getFile(`${container.workdir}/large`, 1_000_000, NEVER)).rejects.toMatchObject({
        code: 'file_too_large',
      });
    });

    it('that are missing or no regular file read as null', async () => {
      await sh(container, 'ln -sf /etc/passwd link; mkdir -p folder; mkfifo pipe 2>/dev/null || true');
      for (const name of ['absent', 'absent/deeper', 'link', 'folder']) {
        expect(await container.getFile(`${container.workdir}/${name}`, 1000, NEVER)).toBeNull();
      }
    });

    it('are not written through a link out of the sandbox', async () => {
      if (!options.isolated) return;
      await sh(container, 'ln -sfn /tmp/outside escape; mkdir -p /tmp/outside');
      await container
        .putFiles([{ path: `${container.workdir}/escape/x`, content: Buffer.from('x') }], NEVER)
        .catch(() => undefined);
      await expect(import('node:fs/promises').then((fs) => fs.access('/tmp/outside/x'))).rejects.toThrow();
    });
  });

  describeIf(options.isolated, 'isolation', () => {
    it('has no network', async () => {
      const script = `import socket
s = socket.socket(); s.settimeout(2)
try: s.connect(("1.1.1.1", 80)); print("connected")
except OSError: print("refused")`;
      expect((await exec(`python3 -c '${script}'`)).output.toString()).toBe('refused\n');
      expect((await exec('grep -vc "lo:" /proc/net/dev')).output.toString().trim()).toBe('2');
    });

    it('sees only its own processes and has no dangerous capabilities', async () => {
      expect(Number((await exec('ls -d /proc/[0-9]* | wc -l')).output.toString())).toBeLessThan(12);
      const status = (
        await exec('grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status')
      ).output.toString();
      const effective = BigInt(`0x${/CapEff:\s*([0-9a-f]+)/.exec(status)?.[1]}`);
      for (const bit of [12n, 16n, 17n, 19n, 21n, 22n]) expect((effective >> bit) & 1n).toBe(0n);
      expect(status).toMatch(/NoNewPrivs:\s*1/);
    });

    it('cannot end its container, and orphans are reaped', async () => {
      await exec(`[ -e ${TEST_IMAGE_MARKER} ] && { kill -9 -1; kill -9 1; }`, { timeoutMs: 30_000 });
      expect(await container.state()).toBe('running');
      // The program has a unique name, because the first process may have a `sleep`.
      await exec(
        'cp "$(command -v sleep)" /tmp/orphan; for i in 1 2 3; do (sh -c "/tmp/orphan 0.05 &") ; done',
      );
      const left = async (): Promise<string> =>
        (await exec('cat /proc/[0-9]*/stat 2>/dev/null | grep -c "(orphan)\\|) Z "')).output.toString();
      await expect.poll(left).toBe('0\n');
      expect(await container.state()).toBe('running');
    });
  });

  describe('life', () => {
    it('is listed with its owner and leaves nothing behind', async () => {
      const other = await start(subject());
      // Other test files run this case at the same time, and their processes are visible on the host.
      const seconds = `${1_000_000 + process.pid}`;
      await other.exec(['/bin/sh', '-c', `setsid sleep ${seconds} >/dev/null 2>&1 &`], OPTIONS);
      expect((await ours()).find((one) => one.id === other.id)?.owner).toEqual(other.spec.owner);
      expect(await other.state()).toBe('running');
      await other[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
      expect((await ours()).map((one) => one.id)).not.toContain(other.id);
      expect(await other.state()).toBe('gone');
      expect(await countProcesses(`sleep\0${seconds}\0`)).toBe(0);
      await subject().runtime.remove(other.id);
    });

    it('is removed by id', async () => {
      const other = await start(subject());
      await subject().runtime.remove(other.id);
      expect(await other.state()).toBe('gone');
      await other[Symbol.asyncDispose]();
    });

    it('starts many concurrently', async () => {
      const many = await Promise.all(Array.from({ length: 12 }, () => start(subject())));
      expect(new Set(many.map((one) => one.id)).size).toBe(12);
      await Promise.all(many.map((one) => one[Symbol.asyncDispose]()));
    });
  });

  it.each([
    ['too few CPUs', { cpus: 0.001 }],
    ['too many CPUs', { cpus: 100_000 }],
    ['too little memory', { memoryBytes: 1_000_000 }],
    ['more processes than the kernel has numbers', { pids: 1_000_000_000 }],
  ])('%s are refused as an error of the run, and nothing is left', async (_, limits) => {
    if (!options.isolated) return;
    const before = await ours();
    await expect(start(subject(), { limits: { ...LIMITS, ...limits } })).rejects.toMatchObject({
      failureClass: 'sandbox_refused',
    });
    expect(await ours()).toEqual(before);
  });

  it('an unknown image is image_not_found', async () => {
    if (!options.isolated) return;
    const ready = subject().runtime.ensureImage('swefarm-test/does-not-exist:1', NEVER);
    await expect(ready).rejects.toMatchObject({ stage: 'image' });
  });
}
