import type { AdmissionPool, EndpointLoad } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { admissionLines } from './admission.ts';

const load = (kv_usage: number): EndpointLoad => ({
  ...{ endpoint: 'http://a/v1', kv_usage, running: 30, waiting: 2, preemptions: 4 },
});
const pool = (change: Partial<AdmissionPool>): AdmissionPool => ({
  ...{ pool: 'main', limit: 60, playing: 72, waiting: 440, state: null },
  ...change,
});
const state = {
  ...{ limit: 60, threshold: 60, wait_polls: 0, queue_polls: 0, refused: 0, at: 1 },
  ...{ endpoints: [load(0.5), load(0.914)], reason: '3 requests were preempted' },
};

test('a pool with a limit has a line with rollouts, load and the reason of the last fall', () => {
  expect(
    admissionLines([pool({ state }), pool({ pool: 'q#8', limit: 8, playing: 8 }), pool({ limit: null })]),
  ).toEqual([
    'policy main: 60 rollouts play (limit 60); 12 are suspended; 440 wait without a sandbox; ' +
      'KV cache 91 %, 60 requests run, 4 wait, 8 preemptions; last lowered because 3 requests were preempted',
    'policy q#8: 8 rollouts play (limit 8); 440 wait without a sandbox',
  ]);
});
