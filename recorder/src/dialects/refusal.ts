/** The wording of refusals, which decides whether an agent ends or condenses its history. */
import type { Refused } from './dialect.ts';

/** Agents take an error with one of these words for a full context, and ask again with a shorter history. */
const LENGTH_WORDS = [
  'context',
  'length',
  'too long',
  'too large',
  'too many tokens',
  'exceed',
  'maximum',
  'window',
];

const GENERAL: Record<Exclude<Refused, 'overflow'>, string> = {
  over: 'the rollout is over',
  bad_request: 'the request cannot be served',
  unknown: 'no such path or model',
};

/** Type of the error, as both companies name it. */
export const ERROR_TYPE: Record<Refused, string> = {
  over: 'permission_error',
  overflow: 'invalid_request_error',
  bad_request: 'invalid_request_error',
  unknown: 'not_found_error',
};

/** @param overflow the words by which the clients of the dialect recognise a full context */
export function refusalText(why: Refused, message: string, overflow: string): string {
  if (why === 'overflow') return `${overflow}: ${message}`;
  const lower = message.toLowerCase();
  return message === '' || LENGTH_WORDS.some((word) => lower.includes(word)) ? GENERAL[why] : message;
}

/** The error of the two OpenAI dialects. */
export const openaiError = (why: Refused, message: string) => ({
  message: refusalText(why, message, "This model's maximum context length is exceeded"),
  type: ERROR_TYPE[why],
  param: null,
  code: why === 'overflow' ? 'context_length_exceeded' : why,
});
