import { expect, test } from 'vitest';
import { readPage, reliabilityPage } from './failuretable.ts';

test('docs/reliability.md has the failure table of the code (npm run docs:reliability)', () => {
  expect(readPage()).toBe(reliabilityPage(readPage()));
});
