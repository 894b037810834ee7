/** Divides the answers of a rollout into chains: each answer is in exactly one. */
import type { Answer } from './answer.ts';

/** Answers each of which continues the one before. */
export type Chain = {
  /** The answer that the first answer continues, and its chain; null: the first prompt was rendered whole. */
  readonly from: { chain: Chain; answer: Answer } | null;
  readonly answers: [Answer, ...Answer[]];
};

/**
 * Returns the summaries of condensed histories. `cited`: a later whole prompt of the same part of the agent has the text. `again`: the
 * agent asked the same line for another one in other words, as Claude Code does if tags are missing.
 */
export function summariesOf(answers: readonly Answer[]): {
  cited: ReadonlySet<Answer>;
  again: ReadonlySet<Answer>;
} {
  const cited = new Set(
    answers.flatMap(({ asked: { match, sign } }) =>
      match.cites && match.cites.asked.sign === sign ? [match.cites] : [],
    ),
  );
  const isToUser = ({ match: { tail } }: Answer): boolean => tail.at(-1)?.role === 'user';
  const again = answers.filter((answer) => {
    const next = answers[answer.number];
    if (!next || !cited.has(next) || answer.message.tool_calls || !answer.match.parent) return false;
    return answer.match.parent === next.match.parent && isToUser(answer) && isToUser(next);
  });
  return { cited, again: new Set(again) };
}

/**
 * Returns the chains in the order of their first answers. A summary is a chain of its own. Where several answers continue one, the one that goes on longest continues its
 * chain, and of equal ones the latest: an agent that dropped an answer asked again later.
 */
export function chainsOf(answers: readonly Answer[]): Chain[] {
  const { cited, again } = summariesOf(answers);
  const following = longestContinuations(answers, new Set([...cited, ...again]));
  const chainOf = new Map<Answer, Chain>();
  const chains: Chain[] = [];
  for (const answer of answers) {
    const { parent } = answer.match;
    const before = parent && chainOf.get(parent);
    if (parent && before && following.get(parent) === answer) {
      before.answers.push(answer);
      chainOf.set(answer, before);
      continue;
    }
    const from = parent && before ? { chain: before, answer: parent } : null;
    const chain: Chain = { from, answers: [answer] };
    chains.push(chain);
    chainOf.set(answer, chain);
  }
  return chains;
}

/** Returns for each continued answer the one that continues its chain. */
function longestContinuations(
  answers: readonly Answer[],
  summaries: ReadonlySet<Answer>,
): Map<Answer, Answer> {
  const following = new Map<Answer, Answer>();
  const lengths = new Map<Answer, number>();
  // An answer comes later than the one that it continues, so the lengths below an answer are known when it is reached.
  for (const answer of answers.toReversed()) {
    const next = following.get(answer);
    // A later whole prompt that contains an answer continues this answer.
    lengths.set(answer, 1 + (next ? (lengths.get(next) ?? 0) : answer.isInLaterPrompt ? 0.5 : 0));
    const { parent } = answer.match;
    if (!parent || summaries.has(answer)) continue;
    const best = following.get(parent);
    if (!best || isBetter(answer, best, parent, lengths)) following.set(parent, answer);
  }
  return following;
}

function isBetter(one: Answer, best: Answer, parent: Answer, lengths: ReadonlyMap<Answer, number>): boolean {
  const isOwn = ({ asked }: Answer): number => (asked.sign === parent.asked.sign ? 1 : 0);
  if (isOwn(one) !== isOwn(best)) return isOwn(one) > isOwn(best);
  const [length = 0, longest = 0] = [lengths.get(one), lengths.get(best)];
  return length > longest || (length === longest && one.asked.number > best.asked.number);
}
