import { expect, test } from 'vitest';
import { leftAsTheyWere } from './sections.ts';

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
