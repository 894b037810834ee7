import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { leastUsed, openPulledImages } from './pulledimages.ts';

const entry = { id: 'sha256:1', digest: 'sha256:2', bytes: 10 };

it('what one worker brings the other knows, and what was never brought is nobody’s', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'swefarm-brought-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [one, two] = [openPulledImages(join(folder, 'b.json')), openPulledImages(join(folder, 'b.json'))];
  await Promise.all([one.add('a', entry), two.add('b', entry)]);
  await one.used('never-brought');
  expect([...(await two.list()).keys()].sort()).toEqual(['a', 'b']);
  await one.drop(['a']);
  expect([...(await two.list()).keys()]).toEqual(['b']);
});

it('the longest unused goes first; pinned and just used ones stay', () => {
  const at = (used_at: number) => ({ ...entry, pulled_at: 0, used_at });
  const hour = 3_600_000;
  const brought = new Map([
    ['late', at(2)],
    ['early', at(1)],
    ['base/pinned:1', at(0)],
    ['now', at(hour)],
  ]);
  expect(leastUsed(brought, ['base/*'], hour)).toEqual(['early', 'late']);
});
