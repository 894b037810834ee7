import { expect, test } from 'vitest';
import { goldHealthOf } from './facts.ts';

const known = {
  image_digest: 'sha256:a',
  grader: 'swebench-4.1.0',
  network: 'none' as const,
  times: 1,
  gold_resolves: true,
  noop_resolves: false,
  gold_seconds: 30,
  flaky: [],
  needs_egress: false,
  checked_at: '2026-01-01T00:00:00Z',
};
const here = {
  imageDigest: 'sha256:a',
  grader: 'swebench-4.1.0',
  network: 'none' as const,
  timeoutSeconds: 120,
};

test('a finding of the same image, grader and network applies', () => {
  expect(goldHealthOf({ health: [known] }, here)).toEqual({ gold_healthy: true, gold_time_share: 0.25 });
  expect(goldHealthOf({ health: [{ ...known, gold_resolves: false }] }, here)).toEqual({
    gold_healthy: false,
    gold_time_share: null,
  });
});

test.each([
  ['no finding', undefined, {}],
  ['a finding of another image', [known], { imageDigest: 'sha256:b' }],
  ['a finding of another grader', [known], { grader: 'swegym' }],
  ['a finding with another network', [known], { network: 'egress' as const }],
])('%s does not apply', (_name, health, change) => {
  expect(goldHealthOf({ health }, { ...here, ...change })).toEqual({
    gold_healthy: null,
    gold_time_share: null,
  });
});
