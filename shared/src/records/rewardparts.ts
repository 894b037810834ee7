/** The parts of a reward, and the grammar of their weights in a run (`--reward`). grading/src/reward/parts.ts computes the parts. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

/** Names of the parts, which results, answers and the labels of metrics contain. */
export const REWARD_PARTS = [
  'resolved',
  'f2p',
  'p2p',
  'format',
  'invalid_patch',
  'length',
  'turns',
  'submitted',
] as const;
export type RewardPart = (typeof REWARD_PARTS)[number];

/** Values of the parts of one rollout, by name. A part whose facts are unknown is absent. Newer versions may add names. */
export const RewardParts = z.record(z.string(), z.number());
export type RewardParts = z.infer<typeof RewardParts>;

/** Weight of a part; `soft` only for `length`: the numbers of tokens at which the part begins to rise from 0, and reaches 1. */
export type PartWeight = { part: RewardPart; weight: number; soft?: { from: number; to: number } };

/** Level of workers that a run with weights needs. */
export const REWARD_WEIGHTS_LEVEL = 3;

/** Maximum absolute value of a weight. */
const MOST_WEIGHT = 100;
const LONGEST_TEXT = 500;
/** Weight of `length=soft:FROM:TO`, as in DAPO. */
const SOFT_WEIGHT = -1;
const FORM = 'PART=WEIGHT, as in resolved=1,f2p=0.5,format=-0.1,length=soft:24k:32k:-1';

/** Returns the weights of a text such as `resolved=1,length=soft:24k:32k:-1`, or the problem of the text. */
export function parseWeights(text: string): { weights: PartWeight[] } | { problem: string } {
  const weights: PartWeight[] = [];
  for (const term of text.split(',')) {
    const read = parseTerm(term.trim());
    if ('problem' in read) return read;
    if (weights.some(({ part }) => part === read.part))
      return { problem: `part "${read.part}" is given twice; give each part once` };
    weights.push(read);
  }
  return { weights };
}

function parseTerm(term: string): PartWeight | { problem: string } {
  const [name = '', value, ...more] = term.split('=').map((text) => text.trim());
  if (value === undefined || more.length > 0) return { problem: `expected ${FORM}, got "${term}"` };
  const part = REWARD_PARTS.find((known) => known === name);
  if (!part) return { problem: `unknown part "${name}"; known: ${REWARD_PARTS.join(', ')}` };
  if (part === 'length') return parseLength(value);
  const weight = weightOf(value);
  return weight === null ? { problem: badWeight(`${part}=`, value) } : { part, weight };
}

function parseLength(value: string): PartWeight | { problem: string } {
  const [form, start = '', end = '', given, ...more] = value.split(':');
  const [from, to] = [tokensOf(start), tokensOf(end)];
  if (form !== 'soft' || from === null || to === null || more.length > 0)
    return {
      problem: `expected length=soft:FROM:TO or length=soft:FROM:TO:WEIGHT with numbers of tokens (24k is 24 x 1024), got "length=${value}"`,
    };
  if (from >= to) return { problem: `length=${value}: FROM must be below TO` };
  const weight = given === undefined ? SOFT_WEIGHT : weightOf(given);
  if (weight === null) return { problem: badWeight('length=soft:FROM:TO:', given ?? '') };
  return { part: 'length', weight, soft: { from, to } };
}

const badWeight = (before: string, value: string): string =>
  `expected ${before}WEIGHT with a number between -${MOST_WEIGHT} and ${MOST_WEIGHT}, got "${value}"`;

const weightOf = (text: string): number | null =>
  /^[+-]?(\d+\.?\d*|\.\d+)$/.test(text) && Math.abs(Number(text)) <= MOST_WEIGHT ? Number(text) : null;

function tokensOf(text: string): number | null {
  const [, digits, unit] = /^(\d{1,10})(k?)$/.exec(text) ?? [];
  const tokens = Number(digits) * (unit === 'k' ? 1024 : 1);
  return digits !== undefined && tokens <= MOST.tokens ? tokens : null;
}

/** The text of the weights in a run record; the error of the schema names the wrong part. */
export const RewardWeights = z
  .string()
  .max(LONGEST_TEXT)
  .superRefine((text, context) => {
    const read = parseWeights(text);
    if ('problem' in read) context.addIssue({ code: 'custom', message: read.problem });
  });
