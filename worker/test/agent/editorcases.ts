/** Generated calls of the editor: a file, and calls one after the other. */
import fc from 'fast-check';

export type EditorCall = { command: string; path: string } & Record<string, unknown>;
export type EditorCase = { path: string; file: string; calls: EditorCall[] };

const SEED = 20_261_126;
const LINES = [
  'foo',
  '\tbar(x)',
  '  baz',
  '',
  'é 日 😀',
  'x = 1',
  'foo',
  '\\n %s \'"`$(id)`',
  'a\tb\tc',
  'end',
  'form\ffeed',
];
const line = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...LINES) },
  fc.string({ unit: 'grapheme-ascii', maxLength: 12 }),
);
const linesOf = (most: number) => fc.array(line, { maxLength: most });
const text = fc.tuple(linesOf(4), fc.constantFrom('\n', '\n', '\r\n')).map(([parts, end]) => parts.join(end));

/** Brackets would look like the numbers of an error. */
const plain = (given: string): string => given.replace(/[[\]]/g, '_');

const contents = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(linesOf(14), fc.constantFrom('\n', '\n', '\n', '\r\n', '\r'))
      .map(([parts, end]) => parts.join(end)),
  },
  { weight: 1, arbitrary: fc.constant('') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('long line ', 'ab\t', '😀').map((part) => `${part.repeat(900)}\n`.repeat(20)),
  },
);

/** A part of the file, from and to in thousandths of its length. */
const part = fc.tuple(fc.nat(1000), fc.nat(60));

type Draft = (file: string) => Record<string, unknown>;
const some = (weight: number, arbitrary: fc.Arbitrary<Draft>) => ({ weight, arbitrary });
const drafts: fc.Arbitrary<Draft> = fc.oneof(
  some(
    2,
    fc.constant(() => ({ command: 'view' })),
  ),
  some(
    2,
    fc
      .tuple(fc.integer({ min: -2, max: 15 }), fc.integer({ min: -2, max: 15 }))
      .map((view_range) => () => ({ command: 'view', view_range })),
  ),
  some(
    7,
    fc.tuple(part, text).map(([[from, length], fresh]) => (file) => {
      const start = Math.floor((from / 1000) * file.length);
      // A half of a character is no text that a model can send.
      const old_str = file.slice(start, start + length).replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '');
      return { command: 'str_replace', old_str, new_str: plain(fresh) };
    }),
  ),
  some(
    1,
    fc.tuple(line, fc.option(line, { nil: undefined })).map(([old, fresh]) => () => ({
      command: 'str_replace',
      old_str: plain(old),
      ...(fresh === undefined ? {} : { new_str: plain(fresh) }),
    })),
  ),
  some(
    4,
    fc.tuple(fc.integer({ min: -1, max: 16 }), text).map(([insert_line, fresh]) => () => ({
      command: 'insert',
      insert_line,
      new_str: plain(fresh),
    })),
  ),
  some(
    3,
    fc.constant(() => ({ command: 'undo_edit' })),
  ),
  some(
    1,
    fc.tuple(fc.constantFrom('', '.new', '/new', '.missing/new'), text).map(([suffix, fresh]) => () => ({
      command: 'create',
      suffix,
      file_text: fresh,
    })),
  ),
  some(
    1,
    fc
      .constantFrom(
        { command: 'insert', insert_line: 0 },
        { command: 'str_replace' },
        { command: 'delete' },
        { command: 'create', suffix: '.x' },
        { command: 'view', suffix: '/..' },
        { command: 'insert', suffix: '/..' },
        { command: 'view', suffix: '.none' },
      )
      .map((call) => () => call),
  ),
);

/** Returns cases below the folder, always the same for a number. A file in Latin-1 is edited with ASCII text, and its edits are not undone. */
export function editorCases(count: number, folder: string): EditorCase[] {
  const arbitrary = fc.tuple(
    contents,
    fc.array(drafts, { minLength: 3, maxLength: 6 }),
    fc.constantFrom(...Array(9).fill(false), true),
  );
  return fc.sample(arbitrary, { seed: SEED, numRuns: count }).map(([raw, calls, isLatin], number) => {
    const file = plain(isLatin ? raw.replace(/[^\0-\xff]/gu, '_').concat('\xe9') : raw);
    const path = `${folder}/case ${number}/it's.py`;
    return {
      path,
      file: Buffer.from(file, isLatin ? 'latin1' : 'utf8').toString('base64'),
      calls: calls
        .map((draft) => draft(file))
        .filter(
          ({ command, new_str }) =>
            !isLatin || (command !== 'undo_edit' && !/[^\0-\x7f]/.test(String(new_str))),
        )
        .map(({ suffix = '', ...call }) => ({ ...call, path: path + String(suffix) }) as EditorCall),
    };
  });
}
