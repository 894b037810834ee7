import { expect, test } from 'vitest';
import { figuresOf } from './figures.ts';
import { readRepository } from './tree.ts';

const tree = readRepository();
const figures = figuresOf(tree);
const isTest = new Set(tree.flatMap((file) => (file.isTest ? [file.path] : [])));

test('the whole repository is read', () => {
  expect(figures.product.files).toBeGreaterThan(400);
  expect(figures.folderImports).toBeGreaterThan(1000);
});

test('imports of files have no cycle at run time', () => {
  expect(figures.fileCirclesAtRunTime).toEqual([]);
});

test('imports of files and of folders have no cycle, types included', () => {
  expect([...figures.fileCircles, ...figures.folderCircles]).toEqual([]);
});

test('no function of the product is over 60 lines, and no file over 300', () => {
  expect(figures.longFunctions).toEqual([]);
  expect(figures.longFiles.filter(({ path }) => !isTest.has(path))).toEqual([]);
});

/** Matches the title of a test, also one below a table of rows. */
const TITLE =
  /(?:\b(?:test|it|describe)(?:\.\w+)*|\])(?: as const)?\)?\(\s*(['"`])((?:\\.|(?!\1)[^\\\n])+)\1,/g;

test('every title of a test is under 90 characters', () => {
  const titles = tree
    .filter(({ path }) => isTest.has(path))
    .flatMap(({ path, text }) => [...text.matchAll(TITLE)].map(([, , title = '']) => ({ path, title })));
  expect(titles.length).toBeGreaterThan(2_000);
  expect(titles.filter(({ title }) => title.length >= 90)).toEqual([]);
});
