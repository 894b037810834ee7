/** Parses records that other processes wrote, possibly of another version. */
import type { z } from 'zod';
import { errorMessage } from '../failures/errors.ts';

export type Read<T> = { value: T } | { problem: string };

/** Maximum number of issues in one message. */
const MOST_ISSUES = 3;

/** Parses a record. Never throws; `problem` names the fields: `tokens.prompt: Invalid input: expected int, received number`. */
export function readRecord<T>(schema: z.ZodType<T>, text: string): Read<T> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { problem: `invalid JSON: ${errorMessage(error)}` };
  }
  const parsed = schema.safeParse(json);
  return parsed.success ? { value: parsed.data } : { problem: problemOf(parsed.error) };
}

/** Returns the issues of a schema in one line. */
export function problemOf(error: z.ZodError): string {
  const shown = error.issues.slice(0, MOST_ISSUES).map((issue) => {
    const at = issue.path.map(String).join('.');
    return at === '' ? issue.message : `${at}: ${issue.message}`;
  });
  const more = error.issues.length - shown.length;
  return shown.join('; ') + (more > 0 ? `; and ${more} more` : '');
}

/** Returns the parsed JSON, or undefined if the text is not JSON. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
