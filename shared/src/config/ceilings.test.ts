import { expect, test } from 'vitest';
import { AgentConfig } from '../records/agentconfig.ts';
import { InstanceEnvironment } from '../records/environment.ts';
import { EvaluationConfig, SandboxConfig } from '../records/runconfig.ts';
import { beyondCeiling, type Ceilings, describeExcess } from './ceilings.ts';
import { loadConfig } from './load.ts';

const none: Ceilings = loadConfig('worker', { env: {} });
const run = {
  agent: AgentConfig.parse({}),
  sandbox: SandboxConfig.parse({ agent_network: 'egress', cpus: 64, disk_bytes: 2 ** 40 }),
  evaluation: EvaluationConfig.parse({ timeout: 3600 }),
  ttl: 1e9,
};
const environment = InstanceEnvironment.parse({
  cpus: 32,
  memory_bytes: 2 ** 36,
  setup: [{ name: 'build', script: 'make', timeout: 7200 }],
});
const asking = { needs_egress: true, environment, plan: undefined };

test('nothing is bounded by default', () => {
  expect(beyondCeiling(run, none, asking)).toBeNull();
});

test('a value above its ceiling is returned with field, value, ceiling and setting', () => {
  const excess = beyondCeiling(run, { ...none, max_cpus: 8 });
  expect(excess).toEqual({ field: 'sandbox.cpus', value: 64, ceiling: 8, setting: 'max_cpus' });
  expect(excess && describeExcess(excess, 'this gateway')).toBe(
    'sandbox.cpus: 64 is beyond 8, the ceiling of this gateway; ask for less, or have its operator raise max_cpus',
  );
  expect(beyondCeiling(run, { ...none, max_cpus: 64 })).toBeNull();
  expect(beyondCeiling(run, { ...none, max_disk_bytes: 1 })?.field).toBe('sandbox.disk_bytes');
});

test('max_network none refuses every network; a disk without a limit is allowed', () => {
  const quiet = { ...run, sandbox: SandboxConfig.parse({}) };
  const closed: Ceilings = { ...none, max_network: 'none', max_disk_bytes: 1 };
  expect(beyondCeiling(run, closed)?.field).toBe('sandbox.agent_network');
  expect(beyondCeiling(quiet, closed)).toBeNull();
  expect(beyondCeiling(quiet, closed, asking)?.field).toBe('needs_egress');
});

test('limits of an instance have the ceilings of the run', () => {
  const of = (ceilings: Partial<Ceilings>) =>
    beyondCeiling({ ...run, sandbox: SandboxConfig.parse({}) }, { ...none, ...ceilings }, asking);
  expect(of({ max_cpus: 16 })).toMatchObject({ field: 'environment.cpus', value: 32, ceiling: 16 });
  expect(of({ max_memory_bytes: 2 ** 33 })?.field).toBe('environment.memory_bytes');
  expect(of({ max_evaluation_seconds: 3600 })).toMatchObject({ field: 'timeout of a step', value: 7200 });
  expect(of({ max_cpus: 32, max_memory_bytes: 2 ** 40, max_evaluation_seconds: 7200 })).toBeNull();
});
