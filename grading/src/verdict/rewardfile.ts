/** Reads the reward that the tests wrote into a file: a number, or a JSON object of numbers with one named `reward`. */
import { type OutcomeSource, RewardComponents, Score } from '@swefarm/shared';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';

const MOST_LETTERS = 64 * 1024;
/** Matches a number that Python's float() accepts, without underscores, infinity and NaN. */
const NUMBER = /^[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][-+]?\d{1,4})?$/;

/**
 * Reads the reward. A file that is missing, or has no finite number within the bounds, gives no reward instead of 0. The worker reads only
 * regular files, so a link or a pipe counts as missing.
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
    return unreadable('no_reward', `${file} has no number that may be a reward`);
  return { readable: true, outcomes: new Map(), text: null, ...read, reward: read.reward as number };
}

/** Reads the reward and its components, which are the other numbers of the object. */
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
