import { describe, expect, it, test } from 'vitest';
import { attributeLine, leftAsTheyWere, patchSections, withoutRepositories } from './sections.ts';

describe('patchSections', () => {
  it('splits at headers only', () => {
    const a = 'diff --git a/x b/x\n@@ -1 +1 @@\n-diff --git a/q b/q\n+ diff --git\n';
    const b = 'diff --git a/y b/y\nGIT binary patch\nliteral 3\nKcmZ\n\n';
    expect(patchSections(Buffer.from(a + b)).map(String)).toEqual([a, b]);
  });

  it('returns no part of an empty patch', () => {
    expect(patchSections(Buffer.alloc(0))).toEqual([]);
  });
});

describe('attributeLine', () => {
  it.each([
    ['plain/file.py', '"/plain/file.py" -diff\n'],
    ['a b*[c]?', '"/a b\\\\*\\\\[c\\\\]\\\\?" -diff\n'],
    ['quo"te\\back', '"/quo\\"te\\\\\\\\back" -diff\n'],
    ['\u00e9', '"/\\303\\251" -diff\n'],
    ['tab\there', '"/tab\\011here" -diff\n'],
  ])('%j', (path, line) => {
    expect(attributeLine(Buffer.from(path))).toBe(line);
  });
});

describe('withoutRepositories', () => {
  const of = (path: string, head: string): string => `diff --git a/${path} b/${path}\n${head}`;
  const rest = of(
    'y',
    'index 1..2 100644\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-index 1..2 160000\n+deleted file mode 160000\n',
  );
  const inside = of('sub dir/x', 'new file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n');

  it.each([
    ['a new repository', of('sub dir', 'new file mode 160000\n'), true],
    ['a repository with another commit', of('sub dir', 'index 1..2 160000\n'), true],
    ['a removed repository and the files below it', of('sub dir', 'deleted file mode 160000\n'), false],
  ])('omits %s', (_name, link, isInside) => {
    const patch = withoutRepositories(Buffer.from(rest + link + inside));
    expect(patch.toString()).toBe(rest + (isInside ? inside : ''));
  });

  it('the time for many nested repositories does not grow with their product', () => {
    const links = Array.from({ length: 100_000 }, (_, n) => of(`r${n}`, 'deleted file mode 160000\n')).join(
      '',
    );
    const files = Array.from({ length: 100_000 }, (_, n) => of(`r${n}-x`, '\n')).join('');
    const nested = of('r1/s', 'deleted file mode 160000\n') + of('r1/z', '\n');
    const began = performance.now();
    const patch = withoutRepositories(Buffer.from(links + nested + files)).toString();
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(patch === files).toBe(true);
  });
});

const list = (...names: string[]): string => names.map((name) => `${name}\0`).join('');
const left = (ignored: string, shown: string, old: string): string[] =>
  leftAsTheyWere(Buffer.from([ignored, shown, old].join('\0'), 'latin1'))
    .toString('latin1')
    .split('\0')
    .slice(0, -1);

test('ignored files are omitted, a folder made in place of one is not', () => {
  expect(left(list('a', 'b', 'c\xe9'), list('a', 'b/x/y', 'c\xe9', 'd'), '')).toEqual(['a', 'c\xe9']);
});

test('unchanged files of an ignored folder are omitted', () => {
  expect(left(list('made/'), list('made/new', 'made/old'), list('./made/old'))).toEqual(['made/old']);
});
