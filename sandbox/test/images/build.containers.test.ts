/** Builds on a real engine: images that no registry provides. */
import { BUILT_IMAGES, newId } from '@swefarm/shared';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { createEnsureImage } from '../../src/engine/images.ts';

const docker = new Docker({ socketPath: '/var/run/docker.sock' });
const open = new AbortController().signal;

test('an image of a task is never asked of a registry', async () => {
  const asked: string[] = [];
  const fetch = async (image: string): Promise<never> => {
    asked.push(image);
    throw new Error('asked');
  };
  const ensure = createEnsureImage({ docker, fetch, pulled: null });
  await expect(ensure(`${BUILT_IMAGES}${newId()}`, open)).rejects.toMatchObject({
    failureClass: 'image_not_found',
  });
  expect(asked).toEqual([]);
});
