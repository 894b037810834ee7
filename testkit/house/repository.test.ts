import { expect, test } from 'vitest';
import { figuresOf } from './figures.ts';
import { readRepository } from './tree.ts';

const figures = figuresOf(readRepository());

test('the whole repository is read', () => {
  expect(figures.product.files).toBeGreaterThan(400);
  expect(figures.folderImports).toBeGreaterThan(1000);
});

test('no files import one another in a circle at run time', () => {
  expect(figures.fileCirclesAtRunTime).toEqual([]);
});
