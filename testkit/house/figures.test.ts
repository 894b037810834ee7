import { expect, test } from 'vitest';
import { writeTree } from '../src/repository.ts';
import { temporaryFolder } from '../test/temporaryfolder.ts';
import { circlesOf } from './circles.ts';
import { figuresOf } from './figures.ts';
import { readTree } from './tree.ts';

async function treeOf(files: Record<string, string>) {
  const root = temporaryFolder('house');
  const config = { compilerOptions: { allowImportingTsExtensions: true, noEmit: true, lib: ['es2024'] } };
  await writeTree(root, { 'worker/tsconfig.json': JSON.stringify(config), ...files });
  return readTree(root, ['worker/tsconfig.json']);
}

const CALLS = Array.from({ length: 60 }, (_, i) => `  one(${i});\n`).join('');
const LONG = `export function long() {\n${CALLS}}\n`;
const PASSAGE = 'two(1);\ntwo(2);\ntwo(3);\ntwo(4);\ntwo(5);\ntwo(6);\n';

test('counts files, imports, cycles, long functions and repeated passages', async () => {
  const figures = figuresOf(
    await treeOf({
      'worker/src/main.ts': "import { a } from './a/a.ts';\nimport { b } from './b/b.ts';\na(b);\n",
      'worker/src/a/a.ts': `import type { B } from '../b/b.ts';\nexport const a = (b: B) => b;\n${PASSAGE}`,
      'worker/src/b/b.ts': `import { a } from '../a/a.ts';\nexport type B = 1;\nexport const b = a;\n{\n${PASSAGE}}\n`,
      'worker/src/b/long.ts': `import { type B, b } from './b.ts';\n${LONG}long(b as B);\n`,
      'worker/src/b/b.test.ts': "import { b } from './b.ts';\nb;\n",
    }),
  );
  expect(figures.product).toMatchObject({ files: 4, folders: 3 });
  expect(figures.tests).toEqual({ files: 1, lines: 2 });
  expect(figures).toMatchObject({ folderArrows: 4, folderImports: 4 });
  expect(figures.fileCircles).toEqual([['worker/src/a/a.ts', 'worker/src/b/b.ts']]);
  expect(figures.fileCirclesAtRunTime).toEqual([]);
  expect(figures.folderCircles).toEqual([['worker/src/a', 'worker/src/b']]);
  expect(figures.looseFiles).toMatchObject({ worker: 1 });
  expect(figures.longFunctions).toEqual([{ path: 'worker/src/b/long.ts', name: 'long', line: 2, lines: 62 }]);
  expect(figures.repeatedPassages).toEqual([
    { at: ['worker/src/a/a.ts:3', 'worker/src/b/b.ts:5'], lines: 6 },
  ]);
});

test('cycles without a common node are separate; a self-reference is none', () => {
  const arrows = ['ab', 'bc', 'ca', 'cd', 'de', 'ed', 'ef', 'gg'].map(([from = '', to = '']) => ({
    from,
    to,
  }));
  expect(circlesOf(arrows)).toEqual([
    ['a', 'b', 'c'],
    ['d', 'e'],
  ]);
});
