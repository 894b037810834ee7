import { expect, it } from 'vitest';
import { parseChallenges } from './authorization.ts';
import { parseReference } from './reference.ts';

const HUB = 'registry-1.docker.io';
const DIGEST = `sha256:${'a'.repeat(64)}`;

it.each([
  ['bash', HUB, 'library/bash', 'latest'],
  ['a/b:1', HUB, 'a/b', '1'],
  ['index.docker.io/a/b', HUB, 'a/b', 'latest'],
  ['ghcr.io/a/b/c:v1.2', 'ghcr.io', 'a/b/c', 'v1.2'],
  ['localhost:5000/a__b--c', 'localhost:5000', 'a__b--c', 'latest'],
  [`reg:5000/a/b@${DIGEST}`, 'reg:5000', 'a/b', DIGEST],
  [`reg:5000/a/b:v1@${DIGEST}`, 'reg:5000', 'a/b', DIGEST],
])('%s is at %s', (image, registry, repository, reference) => {
  expect(parseReference(image)).toEqual({ registry, repository, reference });
});

it.each([
  'A/b',
  'a//b',
  'ghcr.io/a/../b',
  'ghcr.io/a b',
  'ghcr.io/a:',
  'a@sha256:12',
  `a@${DIGEST}@${DIGEST}`,
  'x.y/a?b',
  'u:p@h.com/a',
])('%s is refused with a reason', (image) => {
  expect(() => parseReference(image)).toThrow(/^image .*: .+/);
});

it('reads challenges with several schemes, quoted commas and escapes', () => {
  expect(
    parseChallenges(
      'Basic realm="a, \\"b\\"", Bearer realm="https://t/x",service=s,scope="repository:a/b:pull,push"',
    ),
  ).toEqual([
    { scheme: 'basic', parameters: { realm: 'a, "b"' } },
    {
      scheme: 'bearer',
      parameters: { realm: 'https://t/x', service: 's', scope: 'repository:a/b:pull,push' },
    },
  ]);
  expect(parseChallenges('Negotiate')).toEqual([{ scheme: 'negotiate', parameters: {} }]);
});
