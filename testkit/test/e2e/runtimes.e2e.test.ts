/** Tests Podman and Apptainer with one example. runtimes.full.test.ts tests all examples. */
import { expect, test } from 'vitest';
import { apptainerPresent, onPodman, onSif } from './examples.ts';
import { EXAMPLE_ID } from './scripts.ts';

const SOUND = { golden: [true], noop: [false] };

test('podman: gold resolves, an untouched tree does not', async () => {
  expect(await onPodman([EXAMPLE_ID])).toEqual(SOUND);
});

test('apptainer: a .sif file as a user without root', async ({ skip }) => {
  skip(!apptainerPresent(), 'there is no Apptainer: bash testkit/setup/setup.sh apptainer');
  expect(await onSif(false, [EXAMPLE_ID])).toEqual(SOUND);
});
