import { InstanceEnvironment } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { planKey, type SandboxPlan } from './agentsandbox.ts';

const PLAN: SandboxPlan = {
  spec: {
    image: { name: 'i:1', digest: 'sha256:a', ref: 'r' },
    role: 'agent',
    network: 'none',
    limits: { cpus: 1, memoryBytes: 2, pids: 3, diskBytes: 4 },
    workdir: '/testbed',
    env: { A: 'b' },
  },
  environment: InstanceEnvironment.parse({ hidden: ['/x'], history: 'pruned' }),
  activate: ':',
};
const { spec } = PLAN;
const limits = (change: Partial<typeof spec.limits>) => ({
  ...PLAN,
  spec: { ...spec, limits: { ...spec.limits, ...change } },
});
const image = (change: Partial<typeof spec.image>) => ({
  ...PLAN,
  spec: { ...spec, image: { ...spec.image, ...change } },
});
const environment = (change: Record<string, unknown>) => ({
  ...PLAN,
  environment: InstanceEnvironment.parse({ hidden: ['/x'], history: 'pruned', ...change }),
});

test('whatever goes into a sandbox is part of its key; who asks for it, and whether the image was pulled for him, is not', () => {
  const others: SandboxPlan[] = [
    ...[image({ name: 'i:2' }), image({ digest: 'sha256:b' }), image({ ref: 's' })],
    ...[limits({ cpus: 2 }), limits({ memoryBytes: 3 }), limits({ pids: 4 }), limits({ diskBytes: null })],
    { ...PLAN, spec: { ...spec, role: 'evaluation' } },
    { ...PLAN, spec: { ...spec, network: 'egress' } },
    { ...PLAN, spec: { ...spec, workdir: '/other' } },
    { ...PLAN, spec: { ...spec, env: { A: 'c' } } },
    { ...PLAN, activate: 'exit 9' },
    { ...PLAN, environment: undefined },
    ...[environment({ hidden: ['/y'] }), environment({ history: 'replaced' })],
    environment({ setup: [{ name: 's', script: 'true' }] }),
  ];
  expect(new Set([PLAN, ...others].map(planKey)).size).toBe(others.length + 1);
  expect(planKey(image({ pulled: true }))).toBe(planKey(PLAN));
  expect(planKey(structuredClone(PLAN))).toBe(planKey(PLAN));
});
