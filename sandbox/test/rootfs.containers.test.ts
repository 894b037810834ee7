/** The contract on the rootfs runtime, and its own features: sources of images, the host's tree, limits without control groups. */

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { poll, readProcessStat } from '@swefarm/shared';
import { minimalImage } from '@swefarm/testkit';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findOwners, readProcessFile } from '../src/namespaces/processes.ts';
import { rootfsRuntime } from '../src/rootfs/runtime.ts';
import { run } from '../src/run.ts';
import type { Container, Runtime } from '../src/runtime.ts';
import { sandboxContract } from './contract.ts';
import { cannotBeAnother, tryAsUser } from './other.ts';
import {
  countProcesses,
  describeUnless,
  importImage,
  LIMITS,
  NEVER,
  OPTIONS,
  printed,
  runtimeFolders,
  sh,
  spec,
} from './subject.ts';

const { folder, ...folders } = await runtimeFolders('rootfs');
const CHILD = new URL('./rootfs.child.ts', import.meta.url).pathname;
const socketPath = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';

sandboxContract(
  'rootfs',
  async () => {
    const [full, bare] = await Promise.all([minimalImage(), minimalImage({ bash: false })]);
    return {
      runtime: await rootfsRuntime(folders),
      image: `dir:${full.tree}`,
      imageWithoutBash: `dir:${bare.tree}`,
    };
  },
  { isolated: true, children: true, limits: { memory: 'enforced', pids: 'enforced' } },
);

describe('rootfs', () => {
  let runtime: Runtime;
  let tree: string;
  beforeAll(async () => {
    runtime = await rootfsRuntime({ ...folders, dockerSocket: socketPath });
    tree = (await minimalImage()).tree;
  });
  afterAll(() => runtime[Symbol.asyncDispose]());
  const start = async (image: string, changes = {}): Promise<Container> =>
    runtime.start(spec(await runtime.ensureImage(image, NEVER), changes), NEVER);
  const outputOf = async (container: Container, script: string): Promise<string> =>
    (await printed(container, script)).trim();

  it('leaves nothing in the scratch folder when it cannot be opened', async () => {
    const scratchDir = join(folder, 'unopened');
    const imagesDir = join(folder, 'nofolder');
    await writeFile(imagesDir, '');
    await expect(rootfsRuntime({ imagesDir, scratchDir })).rejects.toThrow();
    expect((await readdir(scratchDir)).filter((name) => name.startsWith('runtime-'))).toEqual([]);
  });

  it('reports that it works and how it limits resources', async () => {
    const check = await runtime.check(NEVER);
    expect(check).toMatchObject({ usable: true, limits: { disk: 'watched' } });
    expect(check.version).toContain('bubblewrap');
  });

  describe('images', () => {
    let archive: string;
    beforeAll(async () => {
      archive = await dockerArchive(tree);
    });

    it('of an engine are exported once, with configuration and owners', async () => {
      const docker = new Docker({ socketPath });
      const [repo, tag] = ['swefarm-test/rootfs', String(process.pid)];
      const image = `${repo}:${tag}`;
      const made = await docker.createContainer({ Image: await importImage(socketPath), Cmd: ['true'] });
      await made.commit({ repo, tag, changes: 'ENV FROM_IMAGE=yes' });
      await made.remove();
      try {
        const [one, two] = await Promise.all([
          runtime.ensureImage(image, NEVER),
          runtime.ensureImage(image, NEVER),
        ]);
        expect(one).toEqual(two);
        expect(one.digest).toBe((await docker.getImage(image).inspect()).Id);
        await using container = await start(image);
        const result = await container.exec(['bash', '-c', 'echo $FROM_IMAGE; stat -c %u /testbed'], OPTIONS);
        expect(result.output.toString()).toBe('yes\n0\n');
        const left = await docker.listContainers({ all: true, filters: { label: ['swefarm.export'] } });
        expect(left.filter((one) => one.Labels['swefarm.export']?.startsWith(`${process.pid}:`))).toEqual([]);
      } finally {
        await docker.getImage(image).remove();
      }
    });

    it('of a docker-archive stay after the runtime was closed', async () => {
      await using container = await start(`docker-archive:${archive}`, { workdir: '/made/by/start' });
      expect(await outputOf(container, 'pwd; cat /layered; ls /testbed')).toBe('/made/by/start\nsecond');
      await using other = await rootfsRuntime(folders);
      const image = await other.ensureImage(`docker-archive:${archive}`, NEVER);
      expect(image.digest).toBe(container.spec.image.digest);
    });

    it.each([
      ['dir:/does/not/exist', 'image_not_found'],
      ['dir:relative', 'image_not_found'],
      ['docker-archive:/does/not/exist.tar', 'image_not_found'],
      ['oci:/', 'image_pull'],
      ['docker-archive:/etc/passwd', 'image_pull'],
    ])('%s is %s', async (image, failureClass) => {
      await expect(runtime.ensureImage(image, NEVER)).rejects.toMatchObject({ failureClass });
    });

    it('have their own user', async () => {
      // A separate tree, because other test files use the shared one at the same time.
      const own = join(folder, 'owned');
      await run('cp', ['-al', tree, own]);
      await writeFile(`${own}.json`, JSON.stringify({ User: '1234:5678', Env: ['X=1'] }));
      await using container = await start(`dir:${own}`);
      // The tree has no setpriv: a start with another user fails, rather than run as root.
      const result = await container.exec(['id', '-u'], OPTIONS);
      expect([0, 127]).toContain(result.exitCode);
      expect(result.output.toString()).not.toBe('0\n');
    });
  });

  describe("the host's own tree", () => {
    let examples: string;
    beforeAll(async () => {
      examples = join(folder, 'examples');
      await mkdir(join(examples, 'testbed'), { recursive: true });
      await mkdir(join(examples, 'opt/env'), { recursive: true });
      await writeFile(join(examples, 'testbed/file'), 'example\n');
    });

    it('shows the system and the example, and no files of people', async () => {
      await using container = await start(`host+dir:${examples}`);
      expect(await outputOf(container, 'cat file; ls /opt; python3 -c "print(6*7)"')).toBe(
        'example\nenv\n42',
      );
      const hidden = await outputOf(
        container,
        `ls -A /root /home /run /srv /var/lib ${folder} 2>/dev/null | grep -v : || true`,
      );
      expect(hidden.trim()).toBe('');
      expect(
        await outputOf(container, 'ls /etc/shadow /etc/ssh /etc/sudoers /etc/docker 2>/dev/null | wc -l'),
      ).toBe('0');
      expect(await outputOf(container, 'awk -F: "\\$3 >= 1000 && \\$3 != 65534" /etc/passwd | wc -l')).toBe(
        '0',
      );
      await sh(container, 'echo changed > file; echo new > /etc/new; rm -rf /opt/env');
      expect(await readFile(join(examples, 'testbed/file'), 'utf8')).toBe('example\n');
      expect(existsSync('/etc/new')).toBe(false);
      expect(existsSync(join(examples, 'opt/env'))).toBe(true);
    });
  });

  describe('isolation', () => {
    let container: Container;
    beforeAll(async () => {
      container = await start(`dir:${tree}`);
    });
    afterAll(() => container[Symbol.asyncDispose]());

    it('has a loopback and a host name', async () => {
      const script = `import socket
s = socket.socket(); s.bind(("localhost", 0)); s.listen()
socket.create_connection(s.getsockname()); print("connected", socket.gethostname())`;
      expect(await outputOf(container, `python3 -c '${script}'`)).toBe('connected sandbox');
    });

    it('cannot reach kernel settings and roots of other processes', async () => {
      expect(
        await outputOf(container, '(echo x > /proc/sys/kernel/hostname) 2>&1 | grep -c "Read-only"'),
      ).toBe('1');
      expect(
        await outputOf(
          container,
          'ls /proc/1/root/ 2>&1 | grep -c denied; readlink /proc/1/exe || echo none',
        ),
      ).toBe('1\nnone');
      const calls = `import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for call in (("mount", b"none", b"/tmp", b"tmpfs", 0, None), ("unshare", 0x10000000), ("ptrace", 0, 0, 0, 0)):
    print(getattr(libc, call[0])(*call[1:]), ctypes.get_errno())`;
      expect(await outputOf(container, `python3 -c '${calls}'`)).toBe('-1 1\n-1 1\n-1 1');
    });

    it('inherits only the standard streams, which can be reopened', async () => {
      const files = (
        await outputOf(container, 'for f in /proc/self/fd/*; do readlink $f || true; done')
      ).split('\n');
      expect(files.filter((file) => !/fifo|pipes|\/dev\/null|^pid:|\/fd$/.test(file))).toEqual([]);
      // The process's report is a pipe too, and must not reach the inside.
      const numbers = await outputOf(
        container,
        'for f in /proc/self/fd/*; do if [ -p $f ]; then basename $f; fi; done',
      );
      expect(numbers.split('\n').filter((fd) => !['0', '1', '2'].includes(fd))).toEqual([]);
      expect(await outputOf(container, 'echo a > /dev/stdout; echo b > /dev/stderr')).toBe('a\nb');
    });

    it('changes of /dev, /proc and /sys affect no other process, and the masks stay', async () => {
      await using own = await start(`dir:${tree}`);
      await sh(
        own,
        'for line in "rm -rf /dev/* /sys/*" "mv /dev /gone" "mv /proc /gone" "mkdir /tree" "mv /sys /moved" "ln -s /tmp /sys"; do $line || true; done 2>/dev/null',
      );
      const next = await sh(
        own,
        'echo a >/dev/null && head -c 1 /dev/zero | wc -c; [ -c /dev/null ] && echo device',
      );
      expect(next.output.toString()).toBe('1\ndevice\n');
      expect(await outputOf(own, '(echo x >/proc/sys/kernel/hostname) 2>&1 | grep -c "Read-only"')).toBe('1');
      // The host's programs and procfs, which entering processes use, must be invisible.
      expect(await outputOf(own, 'cut -d" " -f5 /proc/self/mountinfo | grep -c "^/tree" || true')).toBe('0');
      expect(await outputOf(own, 'ls /proc | grep -c "^[0-9]*$" | awk "{ print (\\$1 < 10) }"')).toBe('1');
    });

    it('removes a folder deeper than the longest path', async () => {
      const deep = await start(`dir:${tree}`);
      await sh(
        deep,
        'd=$(printf "%0200d" 0); i=0; while [ $i -lt 40 ]; do mkdir $d; cd -P $d || cd $d; i=$((i+1)); done',
      );
      await deep[Symbol.asyncDispose]();
      expect(existsSync(join(folders.scratchDir, deep.id))).toBe(false);
    });
  });

  it('without control groups the watchdog kills the largest process and limits the disk', async () => {
    await using bare = await rootfsRuntime({ ...folders, cgroups: false });
    const image = await bare.ensureImage(`dir:${tree}`, NEVER);
    const limits = { ...LIMITS, memoryBytes: 200_000_000, diskBytes: 50_000_000 };
    await using container = await bare.start(spec(image, { limits }), NEVER);
    const hog = ['python3', '-c', 'x = b"x" * 300_000_000; import time; time.sleep(600)'];
    const result = await container.exec(hog, OPTIONS);
    expect(result).toMatchObject({ exitCode: 137, timedOut: false });
    expect(await container.oomKills()).toBe(1);
    expect(await container.state()).toBe('running');
    await sh(container, 'head -c 80000000 /dev/zero > large');
    await expect.poll(() => container.state(), { timeout: 120_000 }).toBe('own_limit');
  });

  it('dies with its worker, and another worker removes the leftovers', async () => {
    const seconds = `${2_000_000 + process.pid}`;
    const child = spawn(process.execPath, [CHILD, folder, `dir:${tree}`, 'stay', seconds], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const line = await new Promise<Buffer>((resolve) => child.stdout.once('data', resolve));
    const { id } = JSON.parse(line.toString()) as { id: string };
    const sleeping = () => countProcesses(`sleep\0${seconds}\0`);
    await expect.poll(sleeping, { timeout: 120_000 }).toBe(2);
    child.kill('SIGKILL');
    await expect.poll(sleeping, { timeout: 120_000 }).toBe(0);
    expect((await runtime.listOwned()).map((one) => one.id)).toContain(id);
    await runtime.remove(id);
    expect((await runtime.listOwned()).map((one) => one.id)).not.toContain(id);
    expect(existsSync(join(folders.scratchDir, id))).toBe(false);
  });

  it('after the death of the starter sandboxes count as killed, and the next one starts', async () => {
    await using own = await rootfsRuntime(folders);
    const image = await own.ensureImage(`dir:${tree}`, NEVER);
    await using lost = await own.start(spec(image), NEVER);
    const parent = await poll(() => starterOf(lost.id), { pauseMs: 20, withinMs: 30_000 });
    process.kill(parent as number, 'SIGKILL');
    await expect.poll(() => lost.state(), { timeout: 60_000 }).not.toBe('running');
    expect(await lost.state()).toBe('killed');
    await expect(sh(lost, 'true')).rejects.toMatchObject({ failureClass: 'sandbox_lost' });
    await using next = await own.start(spec(image), NEVER);
    expect(await outputOf(next, 'echo alive')).toBe('alive');
  });

  const root = process.getuid?.() === 0 ? null : 'only root can make what belongs to somebody else';
  describeUnless(root, 'a scratch folder of somebody else', () => {
    const STRANGER = 54_321;

    it('is refused at the start, and when it replaces our folder later', async () => {
      const scratchDir = join(folder, 'swapped');
      await mkdir(scratchDir);
      await chown(scratchDir, STRANGER, STRANGER);
      const message = expect.stringMatching(`scratch_dir: ${scratchDir} belongs to uid ${STRANGER}`);
      await expect(rootfsRuntime({ ...folders, scratchDir })).rejects.toMatchObject({
        code: 'folder_not_ours',
        message,
      });
      await rm(scratchDir, { recursive: true });
      await using own = await rootfsRuntime({ ...folders, scratchDir });
      const image = await own.ensureImage(`dir:${tree}`, NEVER);
      await rename(scratchDir, `${scratchDir}.away`);
      await mkdir(scratchDir);
      await chown(scratchDir, STRANGER, STRANGER);
      await expect(own.start(spec(image), NEVER)).rejects.toMatchObject({ message });
      expect(await readdir(scratchDir)).toEqual([]);
      await rm(scratchDir, { recursive: true });
      await rename(`${scratchDir}.away`, scratchDir);
    });
  });

  describeUnless(cannotBeAnother(CHILD), 'without root', () => {
    it('starts, limits processes, and leaves nothing behind', () => tryAsUser(CHILD, folder, tree));
  });
});

/** The parent of a sandbox's owner process; null when there is none. */
async function starterOf(id: string): Promise<number | null> {
  for (const pid of await findOwners(id)) {
    const [program] = (await readProcessFile(pid, 'cmdline')).split('\0', 1);
    if (program?.endsWith('/bwrap')) return readProcessStat(pid)?.parent ?? null;
  }
  return null;
}

/** Makes a docker-archive of two layers: the tree, and a layer that adds a file and whites out /root. */
async function dockerArchive(tree: string): Promise<string> {
  const work = join(folder, 'archive');
  await mkdir(join(work, 'a'), { recursive: true });
  await mkdir(join(work, 'second'), { recursive: true });
  await writeFile(join(work, 'second/layered'), 'second');
  await writeFile(join(work, 'second/.wh.root'), '');
  await run('tar', ['-C', tree, '-cf', join(work, 'a/first.tar'), '.']);
  await run('tar', ['-C', join(work, 'second'), '-cf', join(work, 'a/second.tar'), '.']);
  await writeFile(join(work, 'config.json'), JSON.stringify({ config: { WorkingDir: '/testbed' } }));
  const manifest = [{ Config: 'config.json', Layers: ['a/first.tar', 'a/second.tar'] }];
  await writeFile(join(work, 'manifest.json'), JSON.stringify(manifest));
  const archive = join(folder, 'image.tar.gz');
  await run('tar', ['-C', work, '-czf', archive, 'a', 'config.json', 'manifest.json']);
  return archive;
}
