/** The histories of a rollout as a tree, with the answers of the policy in it. */
import type { TokenLedger } from '@swefarm/policy';
import type { Dialect, Message, ToolDefinition, Turn, TurnRequest } from '@swefarm/shared';
import type { Given } from './echo.ts';

/** The messages up to one message, as an agent sent them. */
export type History = {
  readonly before: History | null;
  /** Null at the start, before the first message. */
  readonly message: Message | null;
  /** Number of messages. */
  readonly length: number;
  /** The answer of the policy that the last message is; null: the message is the agent's own. */
  readonly answer: Answer | null;
  readonly lastAnswer: Answer | null;
  readonly after: History[];
  /** The requests with exactly these messages. */
  readonly asked: Asked[];
};

/** Kind of line that the headers and the form of a request indicate. */
export type Sign = 'subagent' | 'summary' | 'foreign' | null;

/** A request that the policy answers. */
export type Asked = {
  readonly id: string;
  /** Number of the request among those that the policy answers, from 1. */
  readonly number: number;
  readonly dialect: Dialect;
  readonly callsAllowed: boolean;
  readonly tools: readonly ToolDefinition[];
  readonly sign: Sign;
  readonly history: History;
  readonly match: Match;
  /** Number of further requests that wait for the same answer. */
  joined: number;
  answer: Answer | null;
};

/** The match of a request to the earlier requests. */
export type Match = {
  readonly matched: TurnRequest['matched'];
  /** The answer that the request continues; null: its prompt is rendered whole. */
  readonly parent: Answer | null;
  /** The messages after those of the parent and its answer, as the policy gets them. */
  readonly tail: readonly Message[];
  /** Whether the agent gave the parent back in another form. */
  readonly repaired: boolean;
  /** For a prompt that is rendered whole: an earlier answer with whose history it begins, or which was given to that history. */
  readonly kin: Answer | null;
  /** Whether a prompt that is rendered whole contains the text of an earlier answer that nothing continued, which is then a summary. */
  readonly cites: Answer | null;
};

export type Answer = {
  readonly asked: Asked;
  /** Number of the answer in the order in which answers came, from 1. */
  readonly number: number;
  readonly history: History;
  /** The match of its request, or a whole prompt when the token ids do not continue. */
  readonly match: Match;
  readonly given: Given;
  /** The answer as later requests to the policy have it. */
  readonly message: Message;
  /** Id of a call for the agent → id for the policy, for those that differ. */
  readonly callIds: ReadonlyMap<string, string>;
  readonly malformed: boolean;
  /** Whether a later prompt that was rendered whole contains its calls. */
  isInLaterPrompt: boolean;
  readonly turn: Turn & { request: TurnRequest };
  /** State that the policy needs to continue after the answer. */
  readonly point: object;
  readonly experts: TokenLedger['experts'];
};

/** Returns the messages of a history, as the tree has them. */
export function messagesOf(history: History): Message[] {
  const messages: Message[] = [];
  for (let at = history; at.before && at.message; at = at.before) messages.push(at.message);
  return messages.reverse();
}
