/** Tests the connections that the chart's NetworkPolicies allow, by the rules of Kubernetes. */
import { beforeEach, expect, test } from 'vitest';
import { passes } from './reach.ts';
import { NO_TOOLS, type Resource, rendered, resourcesOf, setPath, toolsOf } from './render.ts';

const bin = toolsOf('helm') ?? '';
beforeEach(({ skip }) => skip(bin === '', NO_TOOLS));

const part = (component: string, instance = 'farm') => ({
  'app.kubernetes.io/name': 'swefarm',
  'app.kubernetes.io/instance': instance,
  'app.kubernetes.io/component': component,
});
const resources = (...sets: string[]): Resource[] => resourcesOf(rendered(bin, sets.map(setPath)));
const STRANGER = { pod: { app: 'notebook' }, namespace: { 'kubernetes.io/metadata.name': 'other' } };

test('only workers and gateway of the release reach its Redis; Redis itself reaches nothing', () => {
  const all = resources('default');
  const reaches = (pod: Record<string, string>) => passes(all, 'Ingress', part('redis'), { pod }, 6379);
  expect(['worker', 'gateway', 'prepull'].map((one) => reaches(part(one)))).toEqual([true, true, false]);
  expect(reaches(part('worker', 'another'))).toBe(false);
  expect(passes(all, 'Ingress', part('redis'), STRANGER, 6379)).toBe(false);
  expect(passes(all, 'Ingress', part('redis'), { pod: part('worker') }, 22)).toBe(false);
  expect(passes(all, 'Egress', part('redis'), { address: '203.0.113.7' }, 443)).toBe(false);
});

test('a worker reaches DNS, Redis and the world, and not the metadata service', () => {
  const all = resources('default');
  const reaches = (address: string, port: number, protocol?: string) =>
    passes(all, 'Egress', part('worker'), { address }, port, protocol);
  expect(reaches('169.254.169.254', 80)).toBe(false);
  expect(reaches('fd00:ec2::254', 80)).toBe(false);
  expect(reaches('203.0.113.7', 443)).toBe(true);
  expect(reaches('2001:db8::7', 443)).toBe(true);
  const toPod = (pod: Record<string, string>, port: number, protocol?: string) =>
    passes(all, 'Egress', part('worker'), { pod }, port, protocol);
  expect(toPod({ 'k8s-app': 'kube-dns' }, 53, 'UDP')).toBe(true);
  expect(toPod(part('redis'), 6379)).toBe(true);
});

test('workers reach only given addresses; callers may be limited too', () => {
  const all = resources('external');
  const reaches = (address: string) => passes(all, 'Egress', part('worker'), { address }, 443);
  expect(['10.30.4.1', '10.20.0.9', '203.0.113.7'].map(reaches)).toEqual([true, true, false]);
  const limited = resources('everything');
  const calls = (namespace: string) =>
    passes(
      limited,
      'Ingress',
      part('gateway'),
      { pod: {}, namespace: { 'kubernetes.io/metadata.name': namespace } },
      8080,
    );
  expect(['training', 'monitoring', 'other'].map(calls)).toEqual([true, true, false]);
});

test('prepull reaches DNS and registries, not the metadata service, and nothing reaches it', () => {
  const all = resources('everything');
  const reaches = (address: string) => passes(all, 'Egress', part('prepull'), { address }, 443);
  expect(['203.0.113.7', '169.254.169.254'].map(reaches)).toEqual([true, false]);
  expect(passes(all, 'Egress', part('prepull'), { pod: part('redis') }, 6379)).toBe(false);
  expect(passes(all, 'Ingress', part('prepull'), STRANGER, 9400)).toBe(false);
});

test('outside callers reach a gateway with an external Service or gatewayFrom', () => {
  const outside = { address: '198.51.100.4' };
  const reaches = (...more: string[]) => {
    const set = ['--kube-version', 'v1.33.0', ...more.flatMap((one) => ['--set-json', one])];
    const all = resourcesOf(rendered(bin, [setPath('default')], set));
    return [outside, STRANGER].map((end) => passes(all, 'Ingress', part('gateway'), end, 8080));
  };
  expect(reaches()).toEqual([false, true]);
  expect(reaches('gateway.service.type="LoadBalancer"')).toEqual([true, true]);
  const from = 'networkPolicy.gatewayFrom=[{"ipBlock":{"cidr":"198.51.100.0/24"}}]';
  expect(reaches(from)).toEqual([true, false]);
});

test('blocked addresses stay blocked if all others are allowed', () => {
  const open = 'networkPolicy.egressCidrs=["0.0.0.0/0","10.0.0.0/8"]';
  const all = resourcesOf(
    rendered(bin, [setPath('default')], ['--kube-version', 'v1.33.0', '--set-json', open]),
  );
  const reaches = (address: string) => passes(all, 'Egress', part('worker'), { address }, 443);
  expect(['203.0.113.7', '10.1.2.3', '169.254.169.254'].map(reaches)).toEqual([true, true, false]);
});
