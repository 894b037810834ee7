/** Implements the turn client of mode `token-in`, in which each prompt begins with all earlier token ids. */

import { createHash } from 'node:crypto';
import type { Message, PolicyConfig, RequestedSampling, ToolDefinition } from '@swefarm/shared';
import { effectiveSampling } from '@swefarm/shared';
import { type AnswerSyntax, parseAnswer } from './answer.ts';
import { type CompletionReply, parseCompletion } from './endpoint/completion.ts';
import { CompletionStream } from './endpoint/completionstream.ts';
import type { Continued, TurnPoint } from './endpoint/continued.ts';
import { AnswerError } from './endpoint/errors.ts';
import { isEventStream } from './endpoint/events.ts';
import type { Post } from './endpoint/post.ts';
import { requireFinished } from './endpoint/reply.ts';
import { completionBody } from './endpoint/request.ts';
import { PartialAnswer } from './partialanswer.ts';
import { createIncrementer } from './template/increment.ts';
import type { Renderer } from './template/renderer.ts';
import { createSystemFolder } from './template/systemmessages.ts';
import { findTemplateParser } from './template/templateparser.ts';
import { openedThought, splitThinking, type ThoughtTags } from './thinking.ts';
import { joinIds } from './tokens/ids.ts';
import { isAmbiguous } from './toolcalls/registry.ts';
import type { BegunReply, TurnClient, TurnOptions, TurnReply } from './turnclient.ts';
import { type SampledTurn, sendWithinLimit, type TurnSampling } from './turnsampling.ts';

/** Number of last prompt tokens that are searched for an opening thought tag: `<think>` may be several tokens. */
const PROMPT_END_TOKENS = 5;

/** Shared state of the clients of a rollout: the renderer, facts about its template, and whether to stream. */
export type TokenTurns = ReturnType<typeof createTokenTurns>;

export function createTokenTurns(
  initial: PolicyConfig,
  sampling: TurnSampling,
  renderer: Renderer,
  model: () => string,
) {
  let config = initial;
  const thoughts = new Map<string, ThoughtTags | false>();
  const templates = new Map<string, TemplateWithTools>();
  const fold = createSystemFolder(renderer);
  return {
    sampling,
    /** Whether requests have `stop` texts, which make the end of an answer unknown. */
    hasStop: effectiveSampling(initial).stop !== undefined,
    canContinue: canContinue(initial),
    config: () => ({ ...config, model: model() }),
    stopStreaming(): void {
      config = { ...config, stream: 'off' };
    },
    async render(messages: readonly Message[], tools: readonly ToolDefinition[], post: Post) {
      return await renderer.render(await fold(messages, post, 'whole'), tools, post);
    },
    fold,
    templateWith(tools: readonly ToolDefinition[]): TemplateWithTools {
      const key = JSON.stringify(tools);
      const known = templates.get(key) ?? openTemplate(renderer, tools);
      templates.set(key, known);
      return known;
    },
    /** Returns the thought tags that the end of a prompt opens. */
    async openedThought(prompt: Int32Array, post: Post): Promise<ThoughtTags | false> {
      const end = prompt.subarray(-PROMPT_END_TOKENS);
      const key = end.join();
      const opened = thoughts.get(key) ?? openedThought(await renderer.decode(end, post));
      thoughts.set(key, opened);
      return opened;
    },
  };
}

/** Request fields by which a grammar of vLLM or SGLang restricts the answer. */
const GRAMMAR = /^(?:guided_.+|structured_outputs|response_format|json_schema|regex|ebnf|structural_tag)$/;

/**
 * Returns whether an interrupted answer may be continued: the server must sample the rest as in one request, although the received part is now
 * in the prompt. A `stop` text may begin in the received part. Presence and frequency penalties and grammars see only the answer's own tokens.
 */
function canContinue(config: PolicyConfig): boolean {
  const {
    stop,
    presence_penalty: presence = 0,
    frequency_penalty: frequency = 0,
  } = effectiveSampling(config);
  const limits = Object.entries(config.extra_body).some(
    ([key, value]) => value !== null && GRAMMAR.test(key),
  );
  return stop === undefined && presence === 0 && frequency === 0 && !limits;
}

type TemplateWithTools = ReturnType<typeof openTemplate>;

function openTemplate(renderer: Renderer, tools: readonly ToolDefinition[]) {
  let parser: AnswerSyntax['parser'] | null = null;
  return {
    incrementer: createIncrementer(renderer, tools),
    /** Returns the parser of the calls that the template writes. */
    async parser(post: Post): Promise<AnswerSyntax['parser']> {
      parser ??= await findTemplateParser({ renderer, tools, post });
      return parser;
    },
  };
}

type LastTurn = { ids: Int32Array; point: TurnPoint };

export class TokenTurnClient implements TurnClient {
  readonly #turns: TokenTurns;
  #last: LastTurn | null;
  #template: TemplateWithTools | null = null;
  #prepared: { messages: number; prompt: Int32Array } | null = null;
  #partial = new PartialAnswer();
  #stream: CompletionStream | null = null;
  /** Complete answer that is not parsed yet, so that an error of the template's endpoint does not lose the answer. */
  #received: (CompletionReply & { asked: RequestedSampling }) | null = null;

  constructor(turns: TokenTurns, after?: Continued) {
    this.#turns = turns;
    this.#last = lastOf(after);
  }

  async ask(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    post: Post,
    { answer = (this.#last?.point.answer ?? 0) + 1, maxTokens = null }: TurnOptions = {},
  ): Promise<TurnReply> {
    const prompt = await this.#promptFor(messages, tools, post);
    const firstPrompt = this.#last?.point.firstPrompt ?? prompt.length;
    const opened = await this.#turns.openedThought(prompt, post);
    this.#received ??= await this.#requestAnswer({ answer, maxTokens }, prompt, firstPrompt, post);
    const { text, ...reply } = this.#received;
    const message = parseAnswer(text, {
      withTools: tools.length > 0,
      parser: await this.#parserFor(text, opened, tools, post),
      opened,
      callId: (index) => nineLetters(answer, index),
    });
    // Some servers return no prompt ids. The request contained exactly `prompt`.
    const promptIds = reply.prompt_token_ids ?? prompt;
    const ended = reply.finish_reason !== 'length' && !this.#turns.hasStop;
    const point = { message, at: messages.length, answer, ended, firstPrompt };
    this.#last = { ids: joinIds(promptIds, reply.generation_token_ids), point };
    this.#prepared = null;
    this.#received = null;
    this.#partial = new PartialAnswer();
    this.#stream = null;
    return { ...reply, message, prompt_token_ids: promptIds, after: point, text };
  }

  storedTokens(): number {
    return this.#received?.generation_token_ids.length ?? this.#partial.tokens;
  }

  generatedTokens(): number {
    return this.#received ? this.storedTokens() : this.#partial.tokens + (this.#stream?.tokens ?? 0);
  }

  begun(): BegunReply | null {
    if (this.#prepared === null || this.#received !== null || !this.#turns.canContinue) return null;
    const part = this.#partial.with(this.#stream?.part() ?? null);
    return { ...part, prompt: hashOfIds(this.#prepared.prompt) };
  }

  async resume(
    begun: BegunReply,
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    post: Post,
  ): Promise<boolean> {
    const prompt = await this.#promptFor(messages, tools, post);
    const isFresh = this.#turns.canContinue && this.#partial.tokens === 0;
    if (!isFresh || hashOfIds(prompt) !== begun.prompt) return false;
    this.#partial.append(begun);
    return true;
  }

  stopStreaming(): void {
    this.#turns.stopStreaming();
  }

  async #promptFor(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    post: Post,
  ): Promise<Int32Array> {
    if (this.#prepared?.messages === messages.length) return this.#prepared.prompt;
    this.#received = null;
    let prompt: Int32Array;
    if (this.#last === null) prompt = await this.#turns.render(messages, tools, post);
    else {
      const { ids, point } = this.#last;
      this.#template ??= this.#turns.templateWith(tools);
      const added = await this.#turns.fold(messages.slice(point.at + 1), post, 'added');
      const increment = await this.#template.incrementer.after({ ...point, lastId: ids.at(-1) }, added, post);
      prompt = joinIds(ids, increment);
    }
    this.#prepared = { messages: messages.length, prompt };
    return prompt;
  }

  async #requestAnswer(turn: SampledTurn, turnPrompt: Int32Array, firstPrompt: number, post: Post) {
    const whole = await this.#turns.sampling.forPrompt(turn, turnPrompt.length, firstPrompt);
    const remaining = this.#partial.remaining(whole);
    if (remaining === null) return { ...this.#partial.cutAtLimit(turnPrompt), asked: whole };
    const before = this.#partial.tokens;
    const prompt = joinIds(turnPrompt, this.#partial.ids);
    const send = (one: RequestedSampling) => this.#requestRest(prompt, one, post);
    const [rest, sent] = await sendWithinLimit(remaining, send, prompt.length);
    const most = typeof sent.max_tokens === 'number' ? { max_tokens: sent.max_tokens + before } : {};
    return { ...this.#partial.complete(rest, turnPrompt), asked: { ...whole, ...most } };
  }

  /** Requests the rest of the answer. If the request fails, the received tokens are stored if they are reliable. */
  async #requestRest(prompt: Int32Array, sampling: RequestedSampling, post: Post): Promise<CompletionReply> {
    const stream = new CompletionStream();
    this.#stream = stream;
    try {
      const request = completionBody(this.#partial.configOf(this.#turns.config()), prompt, sampling);
      const body = await post('completions', request, stream);
      if (isEventStream(body)) stream.take(body);
      const rest = body.length === 0 || isEventStream(body) ? stream.end() : parseCompletion(body);
      requireFinished(rest.finish_reason);
      return rest;
    } catch (error) {
      if (this.#turns.canContinue && arePartsReliable(error)) this.#partial.append(stream.part());
      this.#stream = null;
      throw error;
    }
  }

  /** Returns the parser of the answer. If the markers are ambiguous, the call format of the chat template decides. */
  async #parserFor(
    text: string,
    opened: ThoughtTags | false,
    tools: readonly ToolDefinition[],
    post: Post,
  ): Promise<AnswerSyntax['parser']> {
    const { tool_parser: parser } = this.#turns.config();
    if (parser !== 'auto' || tools.length === 0) return parser;
    if (!isAmbiguous(splitThinking(text, opened).rest)) return 'auto';
    this.#template ??= this.#turns.templateWith(tools);
    return await this.#template.parser(post);
  }
}

const hashOfIds = (ids: Int32Array): string => createHash('sha256').update(ids).digest('hex');

function lastOf(after: Continued | undefined): LastTurn | null {
  if (!after?.prompt_token_ids || !after.generation_token_ids) return null;
  return { ids: joinIds(after.prompt_token_ids, after.generation_token_ids), point: after.point };
}

/** Mistral's templates accept only ids of nine letters and digits. */
const nineLetters = (answer: number, index: number): string =>
  `c${answer.toString(36).padStart(4, '0')}${index.toString(36).padStart(4, '0')}`;

/** Returns whether the tokens before an error are usable. Garbage or an engine error in the stream makes them unusable. */
const arePartsReliable = (error: unknown): boolean =>
  !(error instanceof AnswerError) || error.kind === 'cut_short' || error.kind === 'aborted';
