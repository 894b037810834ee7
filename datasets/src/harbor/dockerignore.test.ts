import { expect, test } from 'vitest';
import { readDockerignore } from './dockerignore.ts';

const FILES = ['a.txt', 'b.md', 'data/a.txt', 'data/deep/b.md', 'src/.env', 'src/x.ts', '.env', 'Data.txt'];

// Each list contains the files that `docker build` of Docker 20.10 excludes.
test.each<[string, string[]]>([
  ['a.txt', ['a.txt']],
  ['/a.txt\n# b.md\n\n', ['a.txt']],
  ['*.md', ['b.md']],
  ['**/*.md', ['b.md', 'data/deep/b.md']],
  ['*/*.txt', ['data/a.txt']],
  ['data/', ['data/a.txt', 'data/deep/b.md']],
  ['./data', ['data/a.txt', 'data/deep/b.md']],
  ['data\n!data/a.txt', ['data/deep/b.md']],
  ['*\n!src/x.ts', FILES.filter((name) => name !== 'src/x.ts')],
  ['!a.txt\na.txt', ['a.txt']],
  ['**/.env', ['src/.env', '.env']],
  ['data.txt', []],
  ['.', []],
])('%j excludes the files that Docker excludes', (text, excluded) => {
  expect(FILES.filter(readDockerignore(text))).toEqual(excluded);
});
