/**
 * The interface of a dialect, the form in which an agent asks its model. A dialect is pure: it turns the JSON of a request into
 * {@link AgentRequest}, and an answer into JSON or events. It knows neither sockets nor the policy.
 */
import type { Dialect, Message, ToolDefinition } from '@swefarm/shared';

/**
 * The form in which the agent offered a function. `custom`: the agent sends and expects one free text, which the function has as its
 * argument `input`. `namespace`: the tool that contains the function, whose name is `NAMESPACE__NAME` for the policy.
 */
export type ToolShape = { kind: 'function' | 'custom'; name: string; namespace: string | null };

/** A request in the form that all dialects share. */
export type AgentRequest = {
  dialect: Dialect;
  stream: boolean;
  /** Name of the model in the request. The answer repeats the name. */
  model: string;
  /**
   * The whole history. Roles are those of the farm (`developer` is `system`); a result of a call is a message of role `tool`, in the order
   * in which the agent sent it. Text parts are joined by line breaks. Arguments of a call are JSON.stringify() of their value if they
   * parse, and otherwise as sent. Without what changes no token: ids of items, cache marks, annotations, status.
   */
  messages: Message[];
  /** Index of a message → id of the answer that the agent's echo names. Untrusted: an agent may send any id. */
  answers: ReadonlyMap<number, string>;
  /** Functions only. Tools of other kinds have become functions, or are in `dropped`. */
  tools: ToolDefinition[];
  /** Name of a function → its form in the request, for functions that were offered in another form. */
  shapes: ReadonlyMap<string, ToolShape>;
  /** False: the agent wants no calls (`tool_choice` none). */
  callsAllowed: boolean;
  /** Most tokens that the agent wants as an answer; null: any number. */
  maxTokens: number | null;
  /** Whether a stream ends with the number of tokens. Chat streams send the number only on request. */
  streamUsage: boolean;
  /** Distinct names of fields that the policy cannot receive, such as `picture`, `tool web_search` or `stop`. */
  dropped: string[];
};

/** An answer of the policy. `message.tool_calls` are the calls; their ids are unique in the rollout. */
export type AgentAnswer = {
  /** Unique in the rollout; a dialect makes its own ids (`chatcmpl-…`, `msg_…`) of it. */
  id: string;
  message: Message;
  /** `length`: the token limit cut the answer. */
  finish: 'stop' | 'length' | 'tool_calls';
  usage: { prompt_tokens: number; completion_tokens: number };
};

/**
 * Why a request gets no answer. `over`: the rollout is over. `overflow`: the context is full. `bad_request`: the request cannot be read.
 * `unknown`: a path, or a model, that does not exist.
 */
export type Refused = 'over' | 'overflow' | 'bad_request' | 'unknown';

/** Thrown by `read` for a request that cannot be read or served. The message names the field. */
export class BadRequest extends Error {
  override readonly name = 'BadRequest';
}

export interface DialectForm {
  /** Reads the JSON of a request. Throws BadRequest. */
  read(body: unknown): AgentRequest;
  /** Returns the JSON of a whole answer. */
  whole(request: AgentRequest, answer: AgentAnswer): unknown;
  /** Returns the text of a stream's start: its head events, if the dialect has any that need no answer, and a sign of life. `id`: of the answer. */
  begin(request: AgentRequest, id: string): string;
  /** Returns a sign of life that no agent takes for a part of the answer. */
  alive(request: AgentRequest, id: string): string;
  /** Returns all events of an answer after those of `begin`. */
  events(request: AgentRequest, answer: AgentAnswer): string;
  /**
   * Returns the JSON of a refusal. Its wording decides what an agent does: only that of `overflow` may speak of context or length, so another
   * message that does is replaced.
   */
  refusal(why: Refused, message: string): unknown;
  /** Returns the events that end a begun stream with a refusal. `id`: that of `begin`; the client of OpenAI refuses another. */
  refusedStream(request: AgentRequest, id: string, why: Refused, message: string): string;
}

/** HTTP status of a refusal. All agents exit immediately at 400 and 403, and retry 429 and 5xx. */
export const REFUSAL_STATUS: Record<Refused, number> = {
  over: 403,
  overflow: 400,
  bad_request: 400,
  unknown: 404,
};
