/** Decides what the lines of a rollout are for, by the headers of their requests and by how they relate to each other. */
import type { LineKind } from '@swefarm/shared';
import type { Answer, History } from './answer.ts';
import { type Chain, summariesOf } from './chains.ts';
import { isSameMessage } from './echo.ts';

/** Returns the kind of each chain, in order. */
export function kindsOf(chains: readonly Chain[], answers: readonly Answer[]): Map<Chain, LineKind> {
  const kinds = new Map<Chain, LineKind>();
  const { cited, again } = summariesOf(answers);
  const chainOf = new Map(chains.flatMap((chain) => chain.answers.map((answer) => [answer, chain])));
  const withTools = chains.some(({ answers: [first] }) => first.asked.tools.length > 0);
  const mains: Chain[] = [];
  for (const chain of chains) {
    const [first] = chain.answers;
    const { kin, cites } = first.asked.match;
    const inherited = (answer: Answer | null): LineKind => {
      const kind = answer && kinds.get(chainOf.get(answer) as Chain);
      return kind && kind !== 'abandoned' ? kind : 'main';
    };
    const decide = (): LineKind => {
      const { sign } = first.asked;
      if (sign !== null && sign !== 'subagent') return sign;
      if (isSummaryBeside(chain, answers)) return 'summary';
      if (again.has(first) || isAbandoned(chain, answers)) return 'abandoned';
      if (sign !== null) return sign;
      if (first.asked.tools.length === 0 && withTools) {
        return cited.has(first) || first.match.matched === 'other_tools' ? 'summary' : 'side';
      }
      if (chain.answers.length === 1 && cited.has(first)) return 'summary';
      if (chain.from) return inherited(chain.from.answer);
      if (kin) return inherited(kin);
      if (mains.length === 0 || cites) return 'main';
      return isCondensed(chain, mains) ? 'main' : 'subagent';
    };
    const kind = decide();
    kinds.set(chain, kind);
    if (kind === 'main') mains.push(chain);
  }
  return kinds;
}

/**
 * Returns whether the agent dropped the only answer of a chain: it went on with the same history without the answer. An answer to exactly
 * the same history replaces it only if the agent went on with that one later, or if this one could not be read.
 */
function isAbandoned({ answers }: Chain, all: readonly Answer[]): boolean {
  const [last] = answers;
  if (answers.length > 1 || last.isInLaterPrompt || last.history.after.length > 0) return false;
  const { history } = last.asked;
  const later = all.filter(({ number }) => number > last.number);
  const isReplaced = history.asked.some(({ answer }) => {
    if (!answer || answer === last) return false;
    return later.some((one) => (one === answer ? last.malformed : hasBefore(one, answer)));
  });
  return isReplaced || history.after.some((next) => !isAnswer(next) && isAskedAfter(next, last));
}

const isAnswer = ({ message }: History): boolean => message?.role === 'assistant';

const hasBefore = (answer: Answer, before: Answer): boolean => {
  for (let at: History | null = answer.asked.history; at; at = at.before)
    if (at === before.history) return true;
  return false;
};

/** Returns whether a request later than the answer has this history, or one that continues it before the next answer. */
function isAskedAfter(start: History, last: Answer): boolean {
  // A loop, because a request may have so many messages that recursion would overflow the stack.
  const left = [start];
  for (let at = left.pop(); at; at = left.pop()) {
    if (at.asked.some(({ number, match }) => number > last.asked.number && match.cites === null)) return true;
    left.push(...at.after.filter((next) => !isAnswer(next)));
  }
  return false;
}

/** Returns whether a text outside of the line precedes a whole prompt that continues instead of the line. */
function isSummaryBeside({ from, answers: [first, second] }: Chain, all: readonly Answer[]): boolean {
  const next = all[first.number];
  if (!from || second || first.message.tool_calls || !next) return false;
  const isReplaced = from.chain.answers.every(({ number }) => number < next.number);
  return isReplaced && next.match.parent === null && next.asked.tools.length > 0;
}

/** Returns whether a whole prompt replaces the history of the main line: the starts are equal, and the main line ends there. */
function isCondensed({ answers: [first] }: Chain, mains: readonly Chain[]): boolean {
  const opening = first.match.tail[0];
  const beside = mains.flatMap((main) => main.answers).some(({ number }) => number > first.number);
  const [main] = mains;
  const known = main?.answers[0].match.tail[0];
  return !beside && opening !== undefined && known !== undefined && isSameMessage(opening, known);
}
