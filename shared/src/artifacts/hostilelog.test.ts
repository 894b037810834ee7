/** Logs that a patch fills to make its artifact unreadable. */
import { constants } from 'node:buffer';
import { gunzipSync, gzipSync } from 'node:zlib';
import { bareArtifact } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { type ArtifactContent, decodeArtifact, encodeArtifact } from './codec.ts';

const MIB = 1024 ** 2;

test.each([
  ['control characters', Buffer.alloc(8 * MIB, 1)],
  ['quotes', Buffer.alloc(8 * MIB, '"')],
  ['text', Buffer.from('PASSED t.py::test_ä\n'.repeat(100_000))],
  ['text between control characters', Buffer.from(`${'\x01'.repeat(500)} PASSED ü\n`.repeat(4_000))],
])('a long log of %s comes back, and costs at most four thirds of its bytes', async (_name, log) => {
  const blob = await encodeArtifact({ ...bareArtifact(), test_log: log });
  expect(gunzipSync(blob).length).toBeLessThan((log.length * 4) / 3 + 2048);
  const { test_log } = await decodeArtifact(blob);
  expect(test_log === log.toString('utf8')).toBe(true);
});

test('a log that is given as text is stored in the same form', async () => {
  const log = '\x01'.repeat(2 * MIB);
  const blob = await encodeArtifact({ ...bareArtifact(), test_log: log });
  expect(gunzipSync(blob).length).toBeLessThan(3 * MIB);
  expect((await decodeArtifact(blob)).test_log === log).toBe(true);
});

test('an artifact that is longer than any string is refused', async () => {
  const part = gzipSync(Buffer.alloc(64 * MIB, 0x20));
  const parts = Math.ceil(constants.MAX_STRING_LENGTH / (64 * MIB)) + 1;
  const blob = Buffer.concat(Array.from({ length: parts }, () => part));
  await expect(decodeArtifact(blob)).rejects.toMatchObject({ code: 'bad_artifact' });
});

test('an artifact that is too long loses its log, then its statuses', async () => {
  const names = Object.fromEntries(
    Array.from({ length: 86 }, (_, n) => ['\x01'.repeat(MIB) + n, 'PASSED'] as const),
  );
  const report = { status_map: names, resolved: false } as unknown as ArtifactContent['report'];
  const blob = await encodeArtifact(bareArtifact({ report, test_log: 'log' }));
  expect(await decodeArtifact(blob)).toEqual({
    ...bareArtifact(),
    report: { status_map: null, resolved: false },
    test_log: null,
  });
});
