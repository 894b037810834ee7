import { BUILT_IMAGES } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { taskOf } from '../../test/matrix/harbortasks.ts';
import { imageOf } from './settings.ts';

test('an image that each node builds has one digest in the whole farm', async () => {
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
