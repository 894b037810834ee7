/** Reads the reward that the tests wrote into a file: a number, or a JSON object of numbers with one named `reward`. */
import { type OutcomeSource, RewardComponents, Score } from '@swefarm/shared';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';

/** More is no reward. */
const MOST_LETTERS = 64 * 1024;
/** As Python's float() reads it, but for underscores, infinity and what is no number. */
const NUMBER = /^[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][-+]?\d{1,4})?$/;

/**
 * A file that is missing, holds no number, one that is not finite, or one out of bounds gives no reward, and never 0: who wants 0
 * writes it. The worker takes regular files only, so a link or a pipe is missing.
 */
export function readRewardFile(
  { file }: Extract<OutcomeSource, { from: 'reward' }>,
  { files }: Evidence,
): Outcomes {
  const text = files.get(file)?.trim();
  if (text === undefined) return unreadable('no_reward', `${file} is not there, or is no regular file`);
  if (text.length > MOST_LETTERS) return unreadable('no_reward', `${file} is too long`);
  const read = text.startsWith('{') ? readParts(text) : { reward: NUMBER.test(text) ? Number(text) : null };
  if (!Score.safeParse(read.reward).success)
    return unreadable('no_reward', `${file} holds no number that may be a reward`);
  return { readable: true, outcomes: new Map(), text: null, ...read, reward: read.reward as number };
}

/** The numbers beside `reward` are its parts. */
function readParts(text: string): { reward: unknown; parts?: RewardComponents } {
  const { reward, ...rest } = parseObject(text);
  if (Object.keys(rest).length === 0) return { reward };
  const parts = RewardComponents.safeParse(rest);
  return parts.success ? { reward, parts: parts.data } : { reward: null };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
