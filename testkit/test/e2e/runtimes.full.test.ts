/** Tests every example on Podman and Apptainer, with each form of its image. */
import { expect, test } from 'vitest';
import { onFolders, onPodman, onSif } from './examples.ts';

const SOUND = { golden: [true, true, true, true], noop: [false, false, false, false] };

test('podman', async () => {
  expect(await onPodman()).toEqual(SOUND);
});

test('apptainer: unpacked folders', async () => {
  expect(await onFolders()).toEqual(SOUND);
});

test.each([true, false])('apptainer: .sif files, as root: %s', async (root) => {
  expect(await onSif(root)).toEqual(SOUND);
});
