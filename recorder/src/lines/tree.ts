/**
 * Matches the requests of an agent to earlier ones. The histories with equal tools form a tree; a request is matched by comparing its
 * messages with those of the tree, so a request costs no more than reading it once.
 */
import type { Message, TurnRequest } from '@swefarm/shared';
import type { AgentRequest } from '../dialects/dialect.ts';
import type { Answer, Asked, History, Match, Sign } from './answer.ts';
import { echoOf, isSameMessage } from './echo.ts';

/** A request with its place in the tree. */
export type Found = {
  readonly request: AgentRequest;
  readonly messages: readonly Message[];
  /** The tools as a text, and the start of their tree. */
  readonly tree: { key: string; start: History };
  /** The longest known start of the messages. */
  readonly history: History;
  readonly match: Match;
  /** A request with the same messages that is in flight, or whose answer the agent did not receive completely; null: the policy samples. */
  readonly again: Asked | null;
};

export class HistoryTree {
  readonly #starts = new Map<string, History>();
  readonly #answers: Answer[] = [];
  /** Id of a call, as the agent has it → its answer. */
  readonly #byCall = new Map<string, Answer>();
  #asked = 0;

  get answers(): readonly Answer[] {
    return this.#answers;
  }

  /** Finds the place of a request. The tree does not change. */
  find(request: AgentRequest): Found {
    const messages = inOrderOfCalls(request.messages);
    const key = JSON.stringify(request.tools);
    const start = this.#starts.get(key) ?? historyAfter(null, null, null);
    const history = longestStart(start, messages, request.answers);
    const isWhole = history.length === messages.length;
    const again = isWhole ? history.asked.find((one) => isUnanswered(one, request)) : undefined;
    const match = this.#match({ request, messages, history, start });
    return { request, messages, tree: { key, start }, history, match, again: again ?? null };
  }

  /** Adds a request that the policy is to answer. `id`: of the answer, unique in the rollout. */
  ask({ request, messages, tree, history, match }: Found, id: string, sign: Sign): Asked {
    this.#starts.set(tree.key, tree.start);
    const last = messages.slice(history.length).reduce((before, message) => {
      const next = historyAfter(before, message, null);
      before.after.push(next);
      return next;
    }, history);
    const { dialect, callsAllowed, tools } = request;
    const asked: Asked = {
      ...{ id, number: ++this.#asked, dialect, callsAllowed, tools, sign },
      ...{ history: last, match, joined: 0, answer: null },
    };
    last.asked.push(asked);
    if (match.parent === null) this.#markInLaterPrompt(messages);
    return asked;
  }

  /** Adds the answer to a request. */
  answer(asked: Asked, made: Omit<Answer, 'asked' | 'number' | 'history' | 'isInLaterPrompt'>): Answer {
    const history = historyAfter(asked.history, made.given.message, (history) => ({
      ...made,
      ...{ asked, number: this.#answers.length + 1, history, isInLaterPrompt: false },
    }));
    const answer = history.answer as Answer;
    asked.history.after.push(history);
    asked.answer = answer;
    this.#answers.push(answer);
    for (const { id } of made.given.message.tool_calls ?? []) this.#byCall.set(id, answer);
    return answer;
  }

  /** Removes a request without an answer, and the messages that only this request has. */
  drop(asked: Asked): void {
    remove(asked.history.asked, asked);
    for (let at: History = asked.history; at.before && isUnused(at); at = at.before)
      remove(at.before.after, at);
  }

  #markInLaterPrompt(messages: readonly Message[]): void {
    for (const { id } of messages.flatMap(({ tool_calls: calls }) => calls ?? [])) {
      const answer = this.#byCall.get(id);
      if (answer) answer.isInLaterPrompt = true;
    }
  }

  #match(found: {
    request: AgentRequest;
    messages: readonly Message[];
    history: History;
    start: History;
  }): Match {
    const { request, messages, history, start } = found;
    const parent = history.lastAnswer;
    const tail = messages.slice(parent?.history.length ?? 0);
    if (parent && tail.length > 0 && !tail.some(isAssistant)) {
      const echo = messages[parent.history.length - 1] as Message;
      const repaired =
        echoOf(parent.given, echo, request.answers.get(parent.history.length - 1)) === 'repaired';
      const own = tail.map((message) => withOwnId(message, parent));
      return { matched: 'continued', parent, tail: own, repaired, kin: null, cites: null };
    }
    const whole = (matched: TurnRequest['matched'], kin: Answer | null): Match => ({
      ...{ matched, parent: null, tail: messages, repaired: false, kin },
      cites: this.#citedIn(messages),
    });
    if (this.#asked === 0) return whole('first', null);
    const kin = parent ?? answerBeside(history);
    if (kin || hasAsked(history)) return whole('rewritten', kin);
    for (const other of this.#starts.values()) {
      if (other === start) continue;
      const reached = longestStart(other, messages, request.answers).lastAnswer;
      if (reached) return whole('other_tools', reached);
    }
    return whole('other_prompt', null);
  }

  /** Returns the last answer without calls that nothing continued and whose text the messages contain. */
  #citedIn(messages: readonly Message[]): Answer | null {
    // An answer with a complaint after it in the history is no summary. Summaries of opencode, requested without tools, are answers.
    const isCited = ({ given: { message }, history, asked }: Answer): boolean => {
      const text = summaryIn(message.content ?? '').trim();
      if (message.tool_calls || text.length < SHORTEST_SUMMARY || history.after.length > 0) return false;
      const mayBe = ({ role }: Message): boolean => role !== 'assistant' || asked.tools.length === 0;
      return messages.some((message) => mayBe(message) && message.content?.includes(text));
    };
    return this.#answers.findLast(isCited) ?? null;
  }
}

/** Returns the text between the tags of a summary of Claude Code, whose next prompt contains only this text; without tags the whole text. */
function summaryIn(text: string): string {
  const [open, close] = [text.indexOf('<summary>'), text.lastIndexOf('</summary>')];
  return open === -1 || close < open ? text : text.slice(open + '<summary>'.length, close);
}

/** Fewest characters of a summary: a shorter text may be in any prompt. */
const SHORTEST_SUMMARY = 40;

const isUnused = ({ after, asked, answer }: History): boolean =>
  after.length === 0 && asked.length === 0 && answer === null;

function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item);
  if (at !== -1) list.splice(at, 1);
}

const isAssistant = ({ role }: Message): boolean => role === 'assistant';

const isUnanswered = ({ callsAllowed, answer }: Asked, request: AgentRequest): boolean =>
  callsAllowed === request.callsAllowed && answer?.turn.request.delivered !== true;

function historyAfter(
  before: History | null,
  message: Message | null,
  answered: ((history: History) => Answer) | null,
): History {
  const history = {
    ...{ before, message, after: [], asked: [] },
    length: before ? before.length + 1 : 0,
    answer: null as Answer | null,
    lastAnswer: before?.lastAnswer ?? null,
  };
  if (answered) {
    history.answer = answered(history);
    history.lastAnswer = history.answer;
  }
  return history;
}

/** Returns the longest known history with which the messages begin; of several, the one whose last answer is the latest. */
function longestStart(
  start: History,
  messages: readonly Message[],
  named: ReadonlyMap<number, string>,
): History {
  // The next message does not distinguish two answers with equal text to one history, so all matching histories are followed.
  let fitting: readonly History[] = [start];
  for (const [index, message] of messages.entries()) {
    const next = fitting.flatMap((history) => nextOf(history, message, named.get(index)));
    if (next.length === 0) break;
    fitting = next;
  }
  return fitting.reduce((best, one) => (rankOf(one) >= rankOf(best) ? one : best));
}

const rankOf = ({ lastAnswer }: History): number =>
  lastAnswer ? lastAnswer.history.length * 1e6 + lastAnswer.number : 0;

function nextOf({ after }: History, message: Message, named: string | undefined): History[] {
  const fitting = after.filter(({ answer, message: known }) =>
    answer
      ? message.role === 'assistant' && echoOf(answer.given, message, named) !== null
      : isSameMessage(known as Message, message),
  );
  const exact = fitting.filter(({ answer }) => answer !== null && answer.given.id === named);
  return exact.length > 0 ? exact : fitting;
}

/** Returns an answer to the history or to a start of it. */
function answerBeside(history: History | null): Answer | null {
  for (let at = history; at; at = at.before) {
    const answer = at.asked.findLast((one) => one.answer)?.answer;
    if (answer) return answer;
  }
  return null;
}

function hasAsked(history: History | null): boolean {
  for (let at = history; at; at = at.before) if (at.asked.length > 0) return true;
  return false;
}

function withOwnId(message: Message, { callIds }: Answer): Message {
  const own = message.tool_call_id === undefined ? undefined : callIds.get(message.tool_call_id);
  return own === undefined ? message : { ...message, tool_call_id: own };
}

/** Sorts the results of each answer by the order of its calls: agents send them in the order in which the calls ended. */
export function inOrderOfCalls(messages: readonly Message[]): readonly Message[] {
  const sorted = [...messages];
  for (const [index, { tool_calls: calls }] of messages.entries()) {
    if (!calls || calls.length < 2) continue;
    let end = index + 1;
    while (messages[end]?.role === 'tool') end++;
    const order = new Map(calls.map(({ id }, at) => [id, at]));
    const orderOf = ({ tool_call_id: id }: Message): number => order.get(id ?? '') ?? calls.length;
    const results = sorted.slice(index + 1, end).sort((one, other) => orderOf(one) - orderOf(other));
    sorted.splice(index + 1, results.length, ...results);
  }
  return sorted;
}
