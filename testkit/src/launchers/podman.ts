/**
 * Starts a Podman that serves the Docker API, as root or as a plain user. It uses settings files written here, because the
 * distributions' defaults fail on machines where control groups are hybrid (crun) or rlimits may not be raised (nproc, nofile).
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep, UnusableError } from '@swefarm/shared';
import { answers } from './docker.ts';

export type PodmanEngine = AsyncDisposable & { readonly socketPath: string };

export type StartPodmanOptions = {
  /** The user that runs it, with lines in /etc/subuid and /etc/subgid; only root can choose another user than itself. */
  user?: string;
};

const UP_MS = 60_000;
const END_MS = 15_000;
const POLICY = '{"default":[{"type":"insecureAcceptAnything"}]}';
/**
 * runc is preferred to crun; no rlimits; no log driver or event logger that needs systemd. tmp_dir is private, because with a
 * shared one the `system reset` of one Podman marks the containers of all others as stopped.
 */
const containersConf = (dir: string): string => `[engine]
tmp_dir = "${dir}/run/libpod"
# Each exec leaves two processes for so many seconds, by default 300. Afterwards its exit code cannot be read.
exit_command_delay = 10
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[containers]
default_ulimits = []
log_driver = "k8s-file"
`;
/** Mounts /dev/fuse and /dev/net/tun with the modes of udev, in this mount namespace only. Arguments: folder, user. */
const AS_USER = `for device in fuse tun; do
  at=/dev/$device; [ $device = tun ] && at=/dev/net/tun
  [ -c "$1/$device" ] && mount --bind "$1/$device" $at
done
user=$2; shift 2
exec setpriv --reuid="$user" --regid="$user" --init-groups "$@"`;

/** Starts `podman system service`. Throws UnusableError `engine_missing` / `engine_start` with the end of its log. */
export async function startPodman({ user }: StartPodmanOptions = {}): Promise<PodmanEngine> {
  if (spawnSync('podman', ['--version']).status !== 0)
    throw new UnusableError('engine_missing', 'there is no podman: apt-get install podman runc uidmap');
  const dir = await mkdtemp(join(tmpdir(), 'swefarm-podman-'));
  const socketPath = join(dir, 'run/podman.sock');
  const env = await layOut(dir);
  const as = user === undefined ? [] : await asUser(dir, user);
  const [program = '', ...line] = [...as, 'podman'];
  const log = openSync(join(dir, 'service.log'), 'a');
  const service = spawn(program, [...line, 'system', 'service', '--time=0', `unix://${socketPath}`], {
    stdio: ['ignore', log, log],
    env,
    cwd: dir,
    // A process group of its own: without root Podman continues in a child process.
    detached: true,
  });
  closeSync(log);
  const gone = new Promise<void>((resolve) => {
    service.once('exit', () => resolve());
    service.once('error', () => resolve());
  });
  const engine: PodmanEngine = {
    socketPath,
    async [Symbol.asyncDispose]() {
      await end(service, gone);
      // Its storage contains mounts, and files whose owner ids only its own user namespace can remove.
      spawnSync(program, [...line, 'system', 'reset', '--force'], { env, cwd: dir });
      await killMonitors(dir);
      spawnSync('umount', ['--quiet', join(dir, 'storage/overlay')]);
      await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
  const deadline = performance.now() + UP_MS;
  while (!(await answers(socketPath))) {
    if (service.exitCode !== null || performance.now() > deadline) {
      const text = (await readFile(join(dir, 'service.log'), 'utf8'))
        .trim()
        .split('\n')
        .slice(-3)
        .join(' | ');
      await engine[Symbol.asyncDispose]();
      throw new UnusableError('engine_start', `podman does not come up: ${text}`);
    }
    await sleep(100);
  }
  return engine;
}

/** Writes folders and settings; returns an environment in which Podman uses only these. */
async function layOut(dir: string): Promise<Record<string, string>> {
  const home = join(dir, 'home');
  for (const name of ['run', 'storage', 'devices', 'home/.config/containers'])
    await mkdir(join(dir, name), { recursive: true });
  const storage = `[storage]\ndriver = "overlay"\ngraphroot = "${dir}/storage"\nrunroot = "${dir}/run/containers"\n`;
  await writeFile(join(dir, 'containers.conf'), containersConf(dir));
  await writeFile(join(dir, 'storage.conf'), storage);
  await writeFile(join(home, '.config/containers/policy.json'), POLICY);
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: home,
    XDG_RUNTIME_DIR: join(dir, 'run'),
    CONTAINERS_CONF: join(dir, 'containers.conf'),
    CONTAINERS_STORAGE_CONF: join(dir, 'storage.conf'),
  };
}

/** The command-line prefix that switches to the user. */
async function asUser(dir: string, user: string): Promise<string[]> {
  const devices = join(dir, 'devices');
  for (const [name, minor] of [
    ['fuse', '10 229'],
    ['tun', '10 200'],
  ] as const) {
    execFileSync('mknod', ['-m', '666', join(devices, name), 'c', ...minor.split(' ')]);
  }
  execFileSync('chown', ['-R', `${user}:`, dir]);
  execFileSync('chmod', ['700', join(dir, 'run')]);
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', AS_USER, 'sh', devices, user];
}

/** Kills the monitors of past execs: each runs a Podman at its end, which mounts the storage again. */
async function killMonitors(dir: string): Promise<void> {
  for (const pid of (await readdir('/proc')).map(Number).filter(Boolean)) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
    if (!line.includes(`${dir}/`)) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

async function end(service: ChildProcess, gone: Promise<void>): Promise<void> {
  if (service.exitCode !== null || service.signalCode !== null) return;
  const group = -(service.pid as number);
  process.kill(group, 'SIGTERM');
  const timer = setTimeout(() => process.kill(group, 'SIGKILL'), END_MS);
  await gone;
  clearTimeout(timer);
}
