/** Who reaches whom by the chart's NetworkPolicies, read as Kubernetes defines them. */
import { expect, test } from 'vitest';
import { passes } from './reach.ts';
import { NO_TOOLS, type Resource, rendered, resourcesOf, setPath, toolsOf } from './render.ts';

const bin = toolsOf('helm');
const part = (component: string, instance = 'farm') => ({
  'app.kubernetes.io/name': 'swefarm',
  'app.kubernetes.io/instance': instance,
  'app.kubernetes.io/component': component,
});
const resources = (...sets: string[]): Resource[] => resourcesOf(rendered(bin ?? '', sets.map(setPath)));
const STRANGER = { pod: { app: 'notebook' }, namespace: { 'kubernetes.io/metadata.name': 'other' } };

test('only workers, gateway and prepull of the release reach its Redis; Redis itself reaches nothing', ({
  skip,
}) => {
  if (bin === null) return skip(NO_TOOLS);
  const all = resources('default');
  const reaches = (pod: Record<string, string>) => passes(all, 'Ingress', part('redis'), { pod }, 6379);
  expect(['worker', 'gateway', 'prepull'].map((one) => reaches(part(one)))).toEqual([true, true, true]);
  expect(reaches(part('worker', 'another'))).toBe(false);
  expect(passes(all, 'Ingress', part('redis'), STRANGER, 6379)).toBe(false);
  expect(passes(all, 'Ingress', part('redis'), { pod: part('worker') }, 22)).toBe(false);
  expect(passes(all, 'Egress', part('redis'), { address: '203.0.113.7' }, 443)).toBe(false);
});

test('a worker, and so a sandbox with a network, reaches names, Redis and the world, and not the metadata service', ({
  skip,
}) => {
  if (bin === null) return skip(NO_TOOLS);
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

test('given the addresses that workers may reach, they reach no others; callers may be limited too', ({
  skip,
}) => {
  if (bin === null) return skip(NO_TOOLS);
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
