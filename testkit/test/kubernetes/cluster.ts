/** Starts the cluster of `testkit/kubernetes/cluster.sh` for a test file, with the farm's images. Needs root, Docker and tools.sh. */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { NO_TOOLS, toolsOf } from '../../helm/render.ts';
import { makeImages } from '../../kubernetes/images.ts';
import { prepareSubject } from '../../src/images/subject.ts';
import { run } from '../../src/launchers/run.ts';
import { until } from '../../src/until.ts';

export const ROOT = resolve(import.meta.dirname, '../../..');
/** Number of the cluster (SWEFARM_TEST_KUBERNETES_NUMBER), to run beside another cluster on this machine. */
const NUMBER = Number(process.env.SWEFARM_TEST_KUBERNETES_NUMBER ?? 0);
/** Address of node1, with the gateway and Redis of a release, for pods and for this machine. */
export const NODE = `10.${99 - 2 * NUMBER}.1.1`;
/** Default ports of a release. Pods with the node's network listen at all its addresses. */
export const PORTS = { gateway: 28_080 + 10 * NUMBER, redis: 26_380 + 10 * NUMBER };
const SCRIPT = join(ROOT, 'testkit/kubernetes/cluster.sh');

/** Returns the folder of Helm, the control plane and `more`; null if they were not built. Throws in ci.sh, which has built them. */
export function programsWith(...more: string[]): string | null {
  const folder = toolsOf('helm', 'control', ...more);
  if (folder === null && process.env.SWEFARM_TEST_KUBERNETES_IMAGES) throw new Error(NO_TOOLS);
  return folder;
}
export const programs = programsWith();

export type Cluster = AsyncDisposable & {
  /** Folder of all files of the cluster, on a disk. */
  readonly folder: string;
  readonly kubeconfig: string;
  /** Image tree of the test's instance; in pods: `/archives/tree`. */
  readonly tree: string;
  kubectl(...args: string[]): Promise<string>;
  helm(...args: string[]): Promise<string>;
  /** Returns the options of every release: the values of `testkit/kubernetes`, folders, and `more` as `--set`. */
  values(release: string, ...more: string[]): Promise<string[]>;
  /** Checks the manifest strictly with a dry run on the API server, and returns the output. */
  dryRun(manifest: string): Promise<string>;
  apply(manifest: string): Promise<string>;
  /** Runs another command of cluster.sh. */
  script(action: string, ...args: string[]): Promise<string>;
  /** Returns the audit log of the API server, one record for each request. */
  audit(): Promise<AuditRecord[]>;
};

export type AuditRecord = {
  user: { username: string };
  verb: string;
  userAgent?: string;
  objectRef?: { resource?: string; namespace?: string; name?: string; subresource?: string };
};

export const sh = async (command: string, ...args: string[]): Promise<string> =>
  (await run(command, args, { cwd: ROOT, maxBuffer: 1 << 27 })).stdout.trim();

/** Returns the archives of worker, gateway and Redis. Makes them unless `ci.sh` has made them. */
async function imageArchives(folder: string): Promise<string[]> {
  const made = process.env.SWEFARM_TEST_KUBERNETES_IMAGES;
  const out = made ?? join(folder, 'images');
  if (!made) await makeImages(out);
  return (await readdir(out)).filter((name) => name.endsWith('.tar')).map((name) => join(out, name));
}

/** @param engine engine of the nodes: Debian's containerd and runc, or those of tools.sh, which support user namespaces of pods */
export async function openCluster(
  nodes: number,
  engine: 'debian' | 'containerd' = 'debian',
): Promise<Cluster> {
  if (programs === null) throw new Error('Helm or Kubernetes is not built');
  const bin = programs;
  // The path is short, because paths of sockets have at most 107 characters, and on a disk, because overlays cannot be on overlays.
  const folder = await mkdtemp('/var/tmp/swefarm-k-');
  // The root user of a pod with a user namespace must be able to enter the folder.
  await chmod(folder, 0o711);
  const at = join(folder, 'cluster');
  const kubeconfig = join(at, 'admin.kubeconfig');
  const access = [`--kubeconfig=${kubeconfig}`, '-n', 'rl'];
  const kubectl = (...args: string[]) => sh('kubectl', ...access, ...args);
  const given = async (manifest: string, ...args: string[]): Promise<string> => {
    const child = run('kubectl', [...access, 'apply', ...args, '-f', '-'], { maxBuffer: 1 << 26 });
    child.child.stdin?.end(manifest);
    return (await child).stdout;
  };
  const stop = async (): Promise<void> => {
    await sh('bash', SCRIPT, 'stop', at);
    await rm(folder, { recursive: true, force: true });
  };
  const { tree } = await prepareSubject();
  try {
    const archives = await imageArchives(folder);
    await sh('bash', SCRIPT, 'start', at, String(nodes), String(NUMBER), engine);
    await sh('bash', SCRIPT, 'images', at, ...archives);
    await kubectl('create', 'namespace', 'rl');
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
  return {
    folder,
    kubeconfig,
    tree,
    kubectl,
    helm: (...args) => sh(join(bin, 'helm'), ...access, ...args),
    async values(release, ...more) {
      const redis = join(folder, `redis-${release}`);
      await mkdir(redis, { recursive: true });
      const set = [
        `gateway.port=${PORTS.gateway}`,
        `redis.address=${NODE}`,
        `redis.port=${PORTS.redis}`,
        `worker.store.path=${folder}/store`,
        `redis.volume.path=${redis}`,
        `worker.archives.hostPath.path=${dirname(tree)}`,
        ...more,
      ];
      return ['-f', 'testkit/kubernetes/values.yaml', ...set.flatMap((one) => ['--set', one])];
    },
    dryRun: (manifest) => given(manifest, '--dry-run=server', '--validate=strict'),
    apply: (manifest) => given(manifest),
    script: (action, ...args) => sh('bash', SCRIPT, action, at, ...args),
    async audit() {
      const text = await readFile(join(at, 'run/audit.log'), 'utf8');
      return text.split('\n').flatMap((line) => (line ? [JSON.parse(line) as AuditRecord] : []));
    },
    [Symbol.asyncDispose]: stop,
  };
}

export async function secretOf({ kubectl }: Cluster, name: string, key: string): Promise<string> {
  const value = await kubectl('get', 'secret', name, '-o', `jsonpath={.data.${key}}`);
  return Buffer.from(value, 'base64').toString();
}

const labels = (release: string) =>
  `app.kubernetes.io/instance=${release},app.kubernetes.io/component=worker`;

type Pod = {
  metadata: { name: string; deletionTimestamp?: string };
  spec: { nodeName?: string };
  status: {
    podIP?: string;
    phase: string;
    containerStatuses?: {
      ready: boolean;
      restartCount: number;
      lastState: { terminated?: { reason?: string; exitCode: number } };
    }[];
  };
};

/** Returns the worker pods of a release from the API server. */
export async function workerStates({ kubectl }: Cluster, release = 'farm'): Promise<Pod[]> {
  return JSON.parse(await kubectl('get', 'pods', '-l', labels(release), '-o', 'json')).items as Pod[];
}

/** Returns the names (`pod/NAME`) of a release's worker pods that are ready and not being deleted. */
export async function workerPods(cluster: Cluster, release = 'farm'): Promise<string[]> {
  const pods = await workerStates(cluster, release);
  return pods
    .filter(({ metadata, status }) => !metadata.deletionTimestamp && status.containerStatuses?.[0]?.ready)
    .map(({ metadata }) => `pod/${metadata.name}`);
}

export const readyWorkers = async (cluster: Cluster, release = 'farm'): Promise<number> =>
  (await workerPods(cluster, release)).length;

export const untilWorkers = (cluster: Cluster, count: number, release = 'farm'): Promise<number> =>
  until(async () => (await readyWorkers(cluster, release)) === count, {
    what: `${count} workers of ${release} are ready`,
    withinMs: 240_000,
    pauseMs: 500,
  });
