/** Tests that workers scale with the queue from 0 and back, by the chart's queries on a real Prometheus that scrapes the gateway's pod. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { type Resource, resourcesOf } from '../../helm/render.ts';
import { type Prometheus, startPrometheus } from '../../src/launchers/prometheus.ts';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import { callerOf } from './caller.ts';
import { type Cluster, programs, secretOf, workerStates } from './cluster.ts';
import { standInDiscovery } from './discovery.ts';
import { standInScaler } from './scaler.ts';
import { clusterForAll, installChart } from './suite.ts';

const ROLLOUTS = 12;

let cluster: Cluster;
let policy: ScriptedPolicy;
let prometheus: Prometheus;
let resources: Resource[];

clusterForAll(programs, { nodes: 1, turns: 4 }, async (opened) => {
  ({ cluster, policy } = opened);
  const values = await cluster.values('farm', 'worker.replicas=0');
  const scaled = ['worker.kind=Deployment', 'autoscaling.kind=keda', 'autoscaling.max=2'];
  scaled.push('autoscaling.rolloutsPerPod=6', 'autoscaling.cooldownSeconds=8', 'monitoring.podMonitor=true');
  const set = scaled.flatMap((one) => ['--set', one]);
  resources = resourcesOf(
    await cluster.helm('template', 'farm', 'helm/swefarm', ...values, ...set, '--kube-version', 'v1.33.13'),
  );
  await installChart(cluster, 'farm', values);
  prometheus = await openPrometheus(opened.stack);
});

const resource = (kind: string, name: string): Resource => {
  const found = resources.find((one) => one.kind === kind && one.metadata.name === name);
  if (!found) throw new Error(`the chart renders no ${kind} ${name}`);
  return found;
};

/** Starts a Prometheus that scrapes the same pods as the operator would by the chart's PodMonitor. */
async function openPrometheus(stack: AsyncDisposableStack): Promise<Prometheus> {
  const folder = join(cluster.folder, 'prometheus');
  await mkdir(folder);
  const { selector, podMetricsEndpoints } = resource('PodMonitor', 'farm-swefarm-gateway').spec;
  const [{ port, path, authorization }] = podMetricsEndpoints;
  const { name, key } = authorization.credentials;
  await writeFile(join(folder, 'token'), await secretOf(cluster, name, key));
  const keepLabel = (label: string, regex: string) => ({ source_labels: [label], regex, action: 'keep' });
  const copy = (label: string, target_label: string) => ({ source_labels: [label], target_label });
  const labels = Object.entries(selector.matchLabels as Record<string, string>).map(([label, value]) =>
    keepLabel(`__meta_kubernetes_pod_label_${label.replaceAll(/[^\w]/g, '_')}`, value),
  );
  const job = {
    job_name: 'podMonitor/rl/farm-swefarm-gateway/0',
    metrics_path: path,
    scrape_interval: '1s',
    authorization: { credentials_file: join(folder, 'token') },
    file_sd_configs: [{ files: [join(folder, 'pods.json')], refresh_interval: '1s' }],
    relabel_configs: [
      ...labels,
      keepLabel('__meta_kubernetes_pod_container_port_name', port),
      copy('__meta_kubernetes_namespace', 'namespace'),
      copy('__meta_kubernetes_pod_container_name', 'container'),
      copy('__meta_kubernetes_pod_name', 'pod'),
    ],
  };
  stack.use(standInDiscovery(cluster, join(folder, 'pods.json')));
  // JSON is YAML.
  return stack.use(await startPrometheus(folder, JSON.stringify({ scrape_configs: [job] })));
}

const pods = async (): Promise<number> => (await workerStates(cluster)).length;

test('from 0 workers to two and back to 0 without a lost rollout', async () => {
  const scaler = standInScaler(resource('ScaledObject', 'farm-swefarm-worker'), cluster, prometheus);
  await until(async () => (await scaler.look()) === 0, { what: 'the query says 0', pauseMs: 500 });
  await until(async () => (await pods()) === 0, { what: 'there is no worker' });
  const caller = await callerOf(cluster);
  const from = Date.now();
  const run = await caller.submit(policy, ROLLOUTS);
  const ended = new AbortController();
  const scaling = (async () => {
    while (!ended.signal.aborted) {
      await scaler.look();
      await sleep(1_000);
    }
  })();
  try {
    const lines = await caller.results(run, ROLLOUTS);
    await until(async () => scaler.requests.at(-1)?.replicas === 0 && (await pods()) === 0, {
      what: 'no worker is left',
      pauseMs: 500,
    });
    await caller.expectWhole(lines, ROLLOUTS);
  } finally {
    ended.abort();
    await scaling;
  }
  const told = scaler.requests.map(
    ({ replicas, at, why }) => `${Math.round((at - from) / 1000)} s: ${replicas} (${why})`,
  );
  console.log(told.join('\n'));
  expect(scaler.requests.map(({ replicas }) => replicas)[0]).toBe(0);
  expect(Math.max(...scaler.requests.map(({ replicas }) => replicas))).toBe(2);
});

test('without an answer of the gateway nothing is scaled', async () => {
  const scaler = standInScaler(resource('ScaledObject', 'farm-swefarm-worker'), cluster, prometheus);
  expect(await scaler.look()).toBe(0);
  await cluster.kubectl('scale', 'deployment/farm-swefarm-gateway', '--replicas=0');
  await until(async () => (await scaler.look()) === null, { what: 'the query finds nothing', pauseMs: 500 });
  expect(scaler.requests.map(({ replicas }) => replicas)).toEqual([0]);
});

test('the HPA of the chart counts the same rollouts', async () => {
  const values = await cluster.values('farm', 'autoscaling.kind=hpa', 'autoscaling.max=2');
  const text = await cluster.helm(
    ...['template', 'farm', 'helm/swefarm', ...values, '--kube-version', 'v1.33.13'],
    ...['--show-only', 'templates/autoscaling.yaml'],
  );
  const { triggers } = resource('ScaledObject', 'farm-swefarm-worker').spec;
  expect(text).toContain(triggers[0].metadata.query);
  expect(await cluster.dryRun(text)).toContain(
    'horizontalpodautoscaler.autoscaling/farm-swefarm-worker created',
  );
});
