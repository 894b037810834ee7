/** Names of log parsers in rows. */
import { isDialect, parserName } from '@swefarm/grading';
import type { FieldReader } from '../fields/fields.ts';

/** The parser's name in the registry; a row whose harness has no such parser cannot be graded. */
export function parserOf(read: FieldReader, column: string, given: unknown, dialect: string): string {
  const name = typeof given === 'string' && isDialect(dialect) ? parserName(given, dialect) : null;
  if (name === null) {
    read.refuse(
      'a log parser that its harness has not',
      column,
      `the name of a parser of ${dialect}`,
      given,
      'leave out the row',
    );
  }
  return name ?? '';
}
