import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { EXPORT_FORMATS, IMPORT_FORMATS } from './registry.ts';
import { RESULT_FORMATS } from './results.ts';

const page = (name: string): string =>
  readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');

test.each(Object.keys(RESULT_FORMATS))('results as %s are in the docs', (name) => {
  expect(page('reports')).toContain(`--output-format ${name}`);
});

test.each(Object.keys(EXPORT_FORMATS))('rollouts as %s are in the docs', (name) => {
  expect(page('training-data')).toContain(`\n| \`--format ${name}\` |`);
});

test.each(Object.keys(IMPORT_FORMATS))(
  'imports of %s are in the docs, and what they read can be written',
  (name) => {
    expect(page('training-data')).toContain(`\n| \`${name}\` |`);
    expect(Object.keys(EXPORT_FORMATS)).toContain(name);
  },
);
