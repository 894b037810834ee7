/** Random changes of logs of every format: a reader returns a map or throws RangeError or SyntaxError. */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DIALECTS, readerRow } from '../corpus.fixture.ts';
import { parserNames, readLog } from './registry.ts';

const FIXTURES = new URL('../../fixtures/', import.meta.url);
const LOGS = readdirSync(FIXTURES)
  .filter((name) => name.endsWith('.log'))
  .map((name) => readFileSync(new URL(name, FIXTURES), 'utf8'));

/** 4.1.0 and SWE-Gym have the readers of 5.0.2, except SWE-Gym's `pytest_pydantic`. */
const OTHERS = DIALECTS.filter((dialect) => dialect !== '4.1.0' && dialect !== 'swegym');
const READERS = OTHERS.flatMap((dialect) => parserNames(dialect).map((parser) => ({ dialect, parser })));

/** Tokens of the formats, unpaired brackets and halves of characters. */
const PIECE = fc.constantFrom(
  ...['(', ')', '[', ']', '{', '}', '<', '>', '</testcase>', '<?xml', '::', ' - ', ':', '|', '||', ' ... '],
  ...['PASSED', 'FAILED', 'ok', 'not ok', '✓', '✕', '___', '...', '12ms', '(1 s)'],
  ...['\n', '\r\n', '\t', ' ', '  '],
  ...['\u001b[32m', '\0', '\ud83d', '\u2028', '\u00a0', '0', '99999999999999999999', '-', '#', '__proto__'],
);

const MUTATED = fc
  .record({
    log: fc.constantFrom(...LOGS),
    other: fc.constantFrom(...LOGS),
    edits: fc.array(fc.record({ at: fc.nat(4000), cut: fc.nat(40), piece: PIECE }), { maxLength: 12 }),
    joined: fc.boolean(),
  })
  .map(({ log, other, edits, joined }) =>
    edits.reduce(
      (text, { at, cut, piece }) => {
        const from = at % (text.length + 1);
        return text.slice(0, from) + piece + text.slice(from + cut);
      },
      joined ? log + other : log,
    ),
  );

test('10,000 mutated logs crash no reader', () => {
  const property = fc.property(fc.constantFrom(...READERS), MUTATED, ({ dialect, parser }, log) => {
    const instance = readerRow({ instance_id: 'jekyll__jekyll-9141' });
    try {
      for (const [name, status] of readLog(parser, dialect, log, instance)) {
        expect(typeof name).toBe('string');
        // Some harnesses read any word of the line as the status.
        expect(typeof status, `${name} by ${parser}`).toBe('string');
      }
    } catch (error) {
      // Readers throw these errors where the harness raises.
      if (!(error instanceof RangeError) && !(error instanceof SyntaxError)) throw error;
    }
  });
  fc.assert(property, { numRuns: 10_000 });
}, 60_000);
