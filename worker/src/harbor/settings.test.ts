import type { ImageBuild } from '@swefarm/sandbox';
import { BUILT_IMAGES } from '@swefarm/shared';
import { bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { taskOf } from '../../test/matrix/harbortasks.ts';
import { imageOf, runOfTask, runOfVerifier } from './settings.ts';

test('the container of a separate verifier has its own limits and network', () => {
  const bare = bareRun();
  const run = { ...bare, sandbox: { ...bare.sandbox, agent_network: 'egress' as const } };
  const separate = { image: 'own', has_tests: true, env: {} };
  const of = (network: 'public' | 'no-network', limits: object) =>
    taskOf(undefined, {
      limits: { cpus: 1, memory_bytes: 2 ** 20 },
      verifier: { timeout: 9, env: {}, separate: { ...separate, network, limits } },
    });
  const task = runOfTask(run, of('public', { cpus: 3 }));
  expect(task.sandbox).toMatchObject({ agent_network: 'none', eval_network: 'egress', cpus: 1 });
  expect(runOfVerifier(task, of('public', { cpus: 3 })).sandbox).toMatchObject({
    ...{ cpus: 3, memory_bytes: 2 ** 20 },
  });
  expect(runOfTask(run, of('no-network', {})).sandbox.eval_network).toBe('none');
});

test('an image that two nodes build has the same digest on both', async () => {
  const { harbor } = taskOf(undefined, { build: { timeout: 60 } });
  const instance = { image: `${BUILT_IMAGES}${'a'.repeat(64)}`, instance_id: 'answer', harbor };
  const node = (id: string) => ({
    name: 'docker' as const,
    build: async () => undefined,
    ensureImage: async (name: string) => ({ name, digest: `sha256:${id}`, ref: id }),
  });
  const { signal } = new AbortController();
  const [one, other] = await Promise.all(['1', '2'].map((id) => imageOf(instance, node(id), signal)));
  expect([one?.digest, one?.ref, other?.ref]).toEqual([`sha256:${'a'.repeat(64)}`, '1', '2']);
  expect(other?.digest).toBe(one?.digest);
});

test.each([
  [{}, { cpus: 2, memoryBytes: 4 * 1024 ** 3 }],
  [
    { cpus: 1, memory_bytes: 2 ** 20 },
    { cpus: 2, memoryBytes: 4 * 1024 ** 3 },
  ],
  [
    { cpus: 8, memory_bytes: 2 ** 34 },
    { cpus: 8, memoryBytes: 2 ** 34 },
  ],
])('the build of a task with the limits %j has the limits %j', async (limits, expected) => {
  const { harbor } = taskOf(undefined, { build: { timeout: 60 }, limits });
  const built: ImageBuild[] = [];
  const runtime = {
    name: 'docker' as const,
    build: async (build: ImageBuild) => void built.push(build),
    ensureImage: async (name: string) => ({ name, digest: 'sha256:1', ref: '1' }),
  };
  const { signal } = new AbortController();
  await imageOf({ image: `${BUILT_IMAGES}a`, instance_id: 'answer', harbor }, runtime, signal);
  expect(built).toMatchObject([{ limits: expected }]);
});
