/** Renders the chart for eight sets of values: it equals the snapshots, is valid for three Kubernetes versions and keeps to policy.ts. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { breachesOf } from './policy.ts';
import { CHART, NO_TOOLS, refusal, rendered, resourcesOf, setNames, setPath, toolsOf } from './render.ts';

const bin = toolsOf('helm', 'schemas') ?? '';
beforeEach(({ skip }) => skip(bin === '', NO_TOOLS));

/** Kinds of other projects, whose schemas are not part of Kubernetes. */
const FOREIGN = 'ScaledObject,PodMonitor,PrometheusRule,HTTPRoute';

const SCHEMAS = join(dirname(bin), 'schemas');

/** Checks manifests with kubeconform for one version of Kubernetes. */
function conformity(input: string, version: string): { status: number | null; stdout: string } {
  const forms = join(SCHEMAS, version, '{{.ResourceKind}}{{.KindSuffix}}.json');
  const args = ['-strict', '-summary', '-skip', FOREIGN, '-schema-location', forms, '-'];
  return spawnSync(join(bin, 'kubeconform'), args, { input, encoding: 'utf8' });
}

test('helm lint finds nothing', () => {
  const { status, stdout } = spawnSync(join(bin, 'helm'), ['lint', '--strict', CHART], { encoding: 'utf8' });
  expect(status, stdout).toBe(0);
});

/** User namespaces of pods (hostUsers) exist since Kubernetes 1.33. The chart refuses to be rendered with them for older versions. */
const needsUsersOfPods = (set: string): boolean => ['podman', 'userns'].includes(set);
const hasUsersOfPods = (version: string): boolean => Number(version.split('.')[1]) >= 33;

describe.each(setNames())('values %s', (name) => {
  test('are rendered as checked in (vitest -u updates the snapshot)', async () => {
    // The snapshot omits the rules, which are a copy of `dashboards/`.
    const whole = rendered(bin, [setPath(name)]).replace(
      /(kind: PrometheusRule\n.*?\n {2}groups:).*?\n---/s,
      '$1 RULES\n---',
    );
    await expect(whole).toMatchFileSnapshot(join(import.meta.dirname, 'snapshots', `${name}.yaml`));
  });

  test('are valid for three versions of Kubernetes, without unknown fields', () => {
    const versions = readdirSync(SCHEMAS);
    expect(versions).toHaveLength(3);
    for (const version of versions.filter((one) => hasUsersOfPods(one) || !needsUsersOfPods(name))) {
      const input = rendered(bin, [setPath(name)], ['--kube-version', version]);
      const { status, stdout } = conformity(input, version);
      expect(status, `${version}: ${stdout}`).toBe(0);
      expect(stdout).toMatch(/Invalid: 0, Errors: 0/);
    }
  });

  test('ask for every privilege that a pod has', () => {
    const values = parse(readFileSync(setPath(name), 'utf8')) ?? {};
    const { redis, worker, gateway, runtime } = values;
    const allowed = {
      mode: runtime?.mode ?? 'rootfs',
      hostPath:
        [redis?.volume?.type, worker?.store?.type].includes('hostPath') ||
        Boolean(worker?.archives?.hostPath),
      hostNetwork: [redis, worker, gateway].some((part) => part?.hostNetwork),
    };
    expect(breachesOf(resourcesOf(rendered(bin, [setPath(name)])), allowed)).toEqual([]);
  });
});

test.for(['nemo-rl', 'train', 'verl'])('the job of %s has no unknown field', (name) => {
  const input = readFileSync(join(CHART, '../examples', `${name}.yaml`), 'utf8');
  const { status, stdout } = conformity(input, 'v1.33.13');
  expect(status, stdout).toBe(0);
});

test('the policy detects each breach', () => {
  const nothing = { mode: 'none', hostPath: false, hostNetwork: false };
  const breaches = (name: string): string =>
    breachesOf(resourcesOf(rendered(bin, [setPath(name)])), nothing).join('\n');
  expect(breaches('docker')).toMatch(/container docker: privileged/);
  expect(breaches('docker')).toMatch(/the folder \/var\/lib\/swefarm\/docker of the node/);
  expect(breaches('default')).toMatch(/container worker: capabilities SYS_ADMIN/);
  expect(breaches('default')).toMatch(/container worker: seccomp Unconfined/);
  expect(breaches('addresses')).toMatch(/the network of the node/);
});

test.for([
  ['worker={"replica":3}', /worker.*replica/s],
  ['runtime={"mode":"rootles"}', /runtime.*mode/s],
  ['redis={"external":{"url":"redis://user:password@host"}}', /redis.*external.*url/s],
  ['gateway={"port":80}', /gateway.*port/s],
  ['worker={"terminationGracePeriodSeconds":5}', /worker.*terminationGracePeriodSeconds/s],
] as const)('a wrong value is refused with its path: %s', ([setting, path]) => {
  expect(refusal(bin, setting)).toMatch(path);
});

test.for([
  [['worker={"resources":{"limits":{"cpu":1,"memory":"900Mi"}}}'], /leaves less than 256Mi for rollouts/],
  [['autoscaling={"kind":"keda"}'], /a DaemonSet has one pod on each node/],
  [['redis={"enabled":false}'], /redis.external.url: needed/],
  [['prepull={"kind":"job","configMap":"rows"}'], /needs a worker.store.type that pods share/],
  [['prepull={"kind":"daemonset"}', 'worker={"store":{"type":"hostPath"}}'], /give configMap or volume/],
  [
    ['worker={"resources":{"limits":{"ephemeral-storage":"10Gi"}}}'],
    /scratch and an emptyDir store count for it/,
  ],
  [
    ['runtime={"mode":"podman","podman":{"resources":{"limits":{"ephemeral-storage":"10Gi"}}}}'],
    /the kubelet ends a pod that passes it/,
  ],
  [['runtime={"mode":"rootfs-userns"}', 'worker={"hostNetwork":true}'], /cannot have the node's network/],
  [
    ['gateway={"callersSecret":"callers"}', 'monitoring={"podMonitor":true}'],
    /monitoring.tokenSecret: needed with gateway.callersSecret/,
  ],
] as const)('conflicting values are refused with a remedy: %s', ([settings, why]) => {
  expect(refusal(bin, ...settings)).toMatch(why);
});

test('a Kubernetes that could silently drop the users of pods is refused with a remedy', () => {
  const install = (set: string) => () => rendered(bin, [setPath(set)], ['--kube-version', 'v1.32.9']);
  expect(install('userns')).toThrow(/rootfs-userns needs Kubernetes 1.33/);
  expect(install('podman')).toThrow(/take another mode/);
  expect(install('default')).not.toThrow();
});

test('a Deployment has a PodDisruptionBudget; a DaemonSet, which cannot be counted, has none', () => {
  const budgets = (set: string) =>
    resourcesOf(rendered(bin, [setPath(set)]))
      .filter(({ kind }) => kind === 'PodDisruptionBudget')
      .map(({ metadata }) => metadata.name);
  expect(budgets('default')).not.toContain('farm-swefarm-worker');
  expect(budgets('everything')).toContain('farm-swefarm-worker');
});
