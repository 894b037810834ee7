import { expect, test } from 'vitest';
import { goldHealthOf } from './goldhealth.ts';

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

test('what was found out here holds', () => {
  expect(goldHealthOf({ health: [known] }, here)).toEqual({ gold_healthy: true, gold_time_share: 0.25 });
  expect(goldHealthOf({ health: [{ ...known, gold_resolves: false }] }, here)).toEqual({
    gold_healthy: false,
    gold_time_share: null,
  });
});

test.each([
  ['nothing was', undefined, {}],
  ['of another image', [known], { imageDigest: 'sha256:b' }],
  ['by another grader', [known], { grader: 'swegym' }],
  ['with a network', [known], { network: 'egress' as const }],
])('what was found out elsewhere does not: %s', (_name, health, change) => {
  expect(goldHealthOf({ health }, { ...here, ...change })).toEqual({
    gold_healthy: null,
    gold_time_share: null,
  });
});
