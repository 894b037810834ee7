/** Shared by the tests of a file: opens a cluster with a policy, and installs releases for single tests. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from 'vitest';
import { NO_TOOLS } from '../../helm/render.ts';
import { words } from '../../src/launchers/commands.ts';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { startPolicy } from './caller.ts';
import { type Cluster, openCluster, sh, untilWorkers, workerPods } from './cluster.ts';

type Opened = { cluster: Cluster; policy: ScriptedPolicy; stack: AsyncDisposableStack };

/**
 * Opens a cluster for the tests of a file, which are skipped if its programs are missing. `stack` is disposed after the tests.
 * @param programs folder of the programs; null: missing
 * @param turns number of turns of two seconds at the start of each rollout
 */
export function clusterForAll(
  programs: string | null,
  { nodes, turns, engine }: { nodes: number; turns: number; engine?: 'containerd' },
  use: (opened: Opened) => Promise<void> | void,
): void {
  const stack = new AsyncDisposableStack();
  beforeEach(({ skip }) => skip(programs === null, NO_TOOLS));
  beforeAll(async () => {
    if (programs === null) return;
    const cluster = stack.use(await openCluster(nodes, engine));
    const policy = stack.use(await startPolicy(turns));
    await use({ cluster, policy, stack });
  }, 900_000);
  afterAll(() => stack.disposeAsync(), 120_000);
}

/** Installs the chart as a release, and waits until it is ready. */
export const installChart = ({ helm }: Cluster, name: string, values: readonly string[]): Promise<string> =>
  helm(...words`install ${name} helm/swefarm ${values} --wait --timeout 180s`);

export function uninstallAfterTest({ helm }: Cluster, name: string): void {
  onTestFinished(async () => {
    await helm(...words`uninstall ${name} --ignore-not-found --wait --timeout 120s`);
  }, 150_000);
}

/** Installs a release with one worker for one test; returns the worker's pod. */
export async function installForTest(cluster: Cluster, name: string, ...set: string[]): Promise<string> {
  const values = await cluster.values(name, 'worker.replicas=1', ...set);
  uninstallAfterTest(cluster, name);
  await installChart(cluster, name, values);
  await untilWorkers(cluster, 1, name);
  const [pod = ''] = await workerPods(cluster, name);
  return pod;
}

/** Copies an image from this machine's Docker to the nodes. */
export async function copyToNodes({ folder, script }: Cluster, image: string): Promise<void> {
  const archive = join(folder, 'image.tar');
  await sh('docker', 'save', '-o', archive, image);
  await script('images', archive);
  await rm(archive);
}

/** Copies an image from this machine's Docker to an engine in a pod. @param engine words of `kubectl exec` up to its client's options */
export async function copyToPod(cluster: Cluster, image: string, engine: readonly string[]): Promise<void> {
  const load = words`kubectl --kubeconfig=${cluster.kubeconfig} -n rl ${engine} load`.join(' ');
  await sh('bash', '-o', 'pipefail', '-c', `docker save ${image} | ${load}`);
}

/** Fails unless the worker of a pod has no capability. */
export async function expectNoCapability({ kubectl }: Cluster, pod: string): Promise<void> {
  const status = await kubectl(...words`exec ${pod} -c worker -- cat /proc/1/status`);
  expect(status).toMatch(/^CapEff:\s+0+$/m);
}
