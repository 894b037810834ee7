import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { generatedFiles } from './files.ts';
import { CHART } from './render.ts';
import { readValues } from './values.ts';

test.each([...generatedFiles()])('helm/%s is up to date (npm run helm)', (path, text) => {
  expect(readFileSync(join(CHART, '..', path), 'utf8')).toBe(text);
});

test('a value without a description is an error that names it', () => {
  expect(() => readValues('# One.\na:\n  # Two.\n  b: 1\n  c: 2\n')).toThrow(
    'a.c has no comment that describes it',
  );
});
