import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { cardSchema } from './cardschema.ts';

test('agents/card.schema.json is the schema of a card (npm run docs:card)', () => {
  expect(readFileSync(new URL('../../card.schema.json', import.meta.url), 'utf8')).toBe(cardSchema());
});
