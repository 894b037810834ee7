/** Tests `npm run images` on a new Debian root: the same commit gives the same images, which run as in the chart. */
import { chown, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { words } from '../src/launchers/commands.ts';
import { ensureDocker } from '../src/launchers/docker.ts';
import { run } from '../src/launchers/run.ts';
import { parseLines } from '../src/lines.ts';
import { temporaryFolder } from './temporaryfolder.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PREFIX = 'swefarm-images-test/';
/** Capabilities of a worker in the chart's mode rootfs. */
const CAPABILITIES =
  words`SYS_ADMIN NET_ADMIN SYS_CHROOT AUDIT_READ CHOWN DAC_OVERRIDE FOWNER FSETID KILL NET_BIND_SERVICE SETFCAP
    SETGID SETPCAP SETUID`.flatMap((name) => ['--cap-add', name]);
const FOLDERS = words`-e SWEFARM_SCRATCH_DIR=/scratch -e SWEFARM_IMAGES_DIR=/store -e SWEFARM_STATE_DIR=/tmp/state`;
type Finding = { subject: string; status: string; detail: string };
/** Uid on the node of the container's root user. */
const FIRST_USER = 100_000;
const docker = async (...args: string[]): Promise<string> =>
  (await run('docker', args, { maxBuffer: 1 << 26 })).stdout.trim();

let folder = '';
beforeAll(async () => {
  await ensureDocker();
  folder = temporaryFolder('images');
  await run('bash', ['testkit/kubernetes/base.sh', 'docker', `${PREFIX}base:1`], { cwd: ROOT });
  await run('node', ['slurm/bundle.mjs', '--out', join(folder, 'bundle')], { cwd: ROOT });
});
afterAll(async () => {
  await run('podman', ['rmi', '-f', `${PREFIX}worker:2`]).catch(() => undefined);
  for (const name of ['worker:1', 'worker:2', 'gateway:1', 'gateway:2', 'base:1'])
    await docker('rmi', `${PREFIX}${name}`).catch(() => undefined);
});

type Image = { name: string; id: string; bytes: number };
async function build(tag: string): Promise<Image[]> {
  const args = words`docker/build.mjs --engine docker --base ${PREFIX}base:1 --prefix ${PREFIX} --tag ${tag}
    --bundle ${join(folder, 'bundle')} --fresh --out ${join(folder, 'out')}`;
  const { stdout } = await run('node', args, { cwd: ROOT, maxBuffer: 1 << 26 });
  return parseLines(stdout);
}

test('repeated builds give the same images, which have labels and a list of packages', async () => {
  const [first, second] = [await build('1'), await build('2')];
  expect(first.map(({ name }) => name)).toEqual([`${PREFIX}worker:1`, `${PREFIX}gateway:1`]);
  expect(second.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
  const format = '{{json .Config.Labels}}';
  const labels = JSON.parse(await docker(...words`image inspect -f ${format} ${PREFIX}worker:1`));
  expect(labels).toMatchObject({
    'org.opencontainers.image.title': 'swefarm-worker',
    'org.opencontainers.image.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
    'org.opencontainers.image.revision': expect.stringMatching(/^[0-9a-f]{40}(-dirty)?$/),
  });
  const list = words`run --rm --entrypoint cat ${PREFIX}worker:1 /opt/swefarm/docker/sbom.json`;
  const bill = JSON.parse(await docker(...list));
  expect(bill.components.map((one: { name: string }) => one.name)).toContain('bullmq');
});

test('with capabilities of mode rootfs, a worker enforces kernel limits', async () => {
  const line = words`run --rm --read-only --tmpfs /tmp -v /scratch -v /store --cap-drop ALL ${CAPABILITIES}
    --security-opt seccomp=unconfined --security-opt apparmor=unconfined ${FOLDERS}
    ${PREFIX}worker:1 doctor --runtime rootfs --json`;
  const output = await docker(...line).catch((error: { stdout: string }) => error.stdout);
  const findings: Finding[] = JSON.parse(output);
  const rootfs = findings.find(({ subject }) => subject === 'runtime rootfs');
  expect(rootfs?.status).toBe('ok');
  expect(rootfs?.detail).toContain('cpu enforced, memory enforced, pids enforced');
});

test('a worker runs sandboxes in the user namespace of a pod, on Podman', async () => {
  await run('podman', ['load', '-q', '-i', join(folder, 'out', 'worker.tar')]);
  const volumes = await Promise.all(
    ['scratch', 'store'].map(async (name) => {
      await mkdir(join(folder, name));
      await chown(join(folder, name), FIRST_USER, FIRST_USER);
      return ['-v', `${join(folder, name)}:/${name}`];
    }),
  );
  const map = `0:${FIRST_USER}:65536`;
  // Without these options an engine would raise limits, which fails on machines where root may not raise them.
  const line = words`run --rm --runtime runc --network none --uidmap ${map} --gidmap ${map}
    --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --cap-drop ALL ${CAPABILITIES}
    --security-opt seccomp=unconfined --security-opt unmask=ALL --tmpfs /tmp ${volumes.flat()} ${FOLDERS}
    ${PREFIX}worker:2 doctor --runtime rootfs --json`;
  const { stdout } = await run('podman', line).catch((error: { stdout: string }) => error);
  const findings: Finding[] = JSON.parse(stdout);
  const rootfs = findings.find(({ subject }) => subject === 'runtime rootfs');
  // Its control groups belong to the node's root, so the worker cannot set all limits and measures instead.
  expect(rootfs).toMatchObject({ status: 'warn', detail: expect.stringContaining('bubblewrap') });
});

test('the gateway runs as an unprivileged user, and its process 1 reaps', async () => {
  const gateway = (entry: string, ...args: string[]) =>
    docker(...words`run --rm --cap-drop ALL --read-only --entrypoint ${entry} ${PREFIX}gateway:1 ${args}`);
  expect(await gateway('id', '-u')).toBe('10001');
  expect(await gateway('/usr/bin/tini', '--', 'cat', '/proc/1/comm')).toBe('tini');
  expect(await docker('run', '--rm', '--read-only', `${PREFIX}gateway:1`, '--help')).toContain(
    'serve the farm over HTTP',
  );
});
