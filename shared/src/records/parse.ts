/** Reads a record that another process wrote, perhaps of another version: the record, or what is wrong with it. */
import type { z } from 'zod';
import { errorMessage } from '../failures/errors.ts';

export type Read<T> = { value: T } | { problem: string };

/** Issues that are named of one record. */
const MOST_ISSUES = 3;

/** Never throws. The problem names the fields: `tokens.prompt: Invalid input: expected int, received number`. */
export function readRecord<T>(schema: z.ZodType<T>, text: string): Read<T> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { problem: `no JSON: ${errorMessage(error)}` };
  }
  const parsed = schema.safeParse(json);
  return parsed.success ? { value: parsed.data } : { problem: problemOf(parsed.error) };
}

/** What a schema found wrong, in one line. */
export function problemOf(error: z.ZodError): string {
  const told = error.issues.slice(0, MOST_ISSUES).map((issue) => {
    const at = issue.path.map(String).join('.');
    return at === '' ? issue.message : `${at}: ${issue.message}`;
  });
  const more = error.issues.length - told.length;
  return told.join('; ') + (more > 0 ? `; and ${more} more` : '');
}
