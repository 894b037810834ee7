/**
 * Reads the rewards of a Harbor task as Harbor 0.25.0 does: `reward.json` if it exists, else `reward.txt`. A missing, empty or invalid file
 * is an error of the verifier. It does not count as a reward of 0.
 */
import { type OutcomeSource, RewardComponents, Score, tryParseJson } from '@swefarm/shared';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';

type Rewards = Record<string, number>;

const DIGITS = String.raw`\d+(?:_\d+)*`;
/** Matches a number that Python's float() accepts, except infinity and NaN. */
const FLOAT = new RegExp(
  String.raw`^[-+]?(?:${DIGITS}(?:\.(?:${DIGITS})?)?|\.${DIGITS})(?:[eE][-+]?${DIGITS})?$`,
);
const MOST_LETTERS = 64 * 1024;
const MOST_PARTS = 16;

/** Returns the reward that counts. All rewards within the bounds of a result, including this one, become components. */
export function readRewards(
  { folder, key }: Extract<OutcomeSource, { from: 'rewards' }>,
  { files }: Evidence,
): Outcomes {
  const json = files.get(`${folder}/reward.json`);
  const text = json ?? files.get(`${folder}/reward.txt`);
  const name = `${folder}/reward.${json === undefined ? 'txt' : 'json'}`;
  if (text === undefined) return noReward(`neither ${folder}/reward.json nor reward.txt is a regular file`);
  if (text === '') return noReward(`${name} is empty`);
  if (text.length > MOST_LETTERS) return noReward(`${name} is too long`);
  const rewards = json === undefined ? parseText(text) : parseObject(text);
  if (rewards === null)
    return noReward(
      json === undefined ? `${name} is not a finite number` : `${name} is not an object of finite numbers`,
    );
  const reward = chosen(rewards, key);
  const parts = partsOf(rewards);
  const names = Object.keys(rewards).slice(0, 5).join(', ');
  if (reward === undefined) {
    const why =
      key === undefined
        ? `${name} has neither a key "reward" nor exactly one key (${names || 'none'}): choose one with --reward-key`
        : `${name} has no key "${key}", which --reward-key names (${names || 'none'})`;
    return { ...noReward(why), parts };
  }
  if (!Score.safeParse(reward).success) return noReward(`${name}: the reward is outside its bounds`);
  return { readable: true, outcomes: new Map(), text: null, reward, parts };
}

const noReward = (detail: string): Outcomes => unreadable('no_reward', detail.slice(0, 300));

function chosen(rewards: Rewards, key: string | undefined): number | undefined {
  if (key !== undefined) return Object.hasOwn(rewards, key) ? rewards[key] : undefined;
  if (Object.hasOwn(rewards, 'reward')) return rewards.reward;
  const all = Object.values(rewards);
  return all.length === 1 ? all[0] : undefined;
}

function parseText(text: string): Rewards | null {
  const trimmed = text.trim();
  const reward = FLOAT.test(trimmed) ? Number(trimmed.replaceAll('_', '')) : Number.NaN;
  return Number.isFinite(reward) ? { reward } : null;
}

/** Returns the rewards of a JSON object, or null if a value is not a number. True and false count as 1 and 0, because Harbor uses Python. */
function parseObject(text: string): Rewards | null {
  const value = tryParseJson(text);
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  const entries = Object.entries(value).map(
    ([name, one]) => [name, typeof one === 'boolean' ? Number(one) : (one as unknown)] as const,
  );
  const areNumbers = entries.every(([, one]) => typeof one === 'number' && Number.isFinite(one));
  return areNumbers ? (Object.fromEntries(entries) as Rewards) : null;
}

/** Omits rewards whose names or values a result cannot contain, because the agent's work may determine both. */
function partsOf(rewards: Rewards): RewardComponents {
  const fits = Object.entries(rewards).filter(
    ([name, value]) => RewardComponents.safeParse({ [name]: value }).success,
  );
  return Object.fromEntries(fits.slice(0, MOST_PARTS));
}
