import fc from 'fast-check';
import { test } from 'vitest';
import { expectReadOrRefused, hostileRow } from '../test/hostile.ts';

test('10,000 changed rows of all families: each is an instance, or refused by line and field', () => {
  fc.assert(fc.property(hostileRow, expectReadOrRefused), { numRuns: 10_000 });
}, 120_000);
