/** Implements the turn client of mode `token-in`, in which each prompt begins with all earlier token ids. */

import type { Message, PolicyConfig, RequestedSampling, ToolDefinition } from '@swefarm/shared';
import { effectiveSampling } from '@swefarm/shared';
import { type AnswerSyntax, parseAnswer } from './answer.ts';
import { type CompletionReply, parseCompletion } from './endpoint/completion.ts';
import { CompletionStream } from './endpoint/completionstream.ts';
import { AnswerError } from './endpoint/errors.ts';
import { isEventStream } from './endpoint/events.ts';
import type { Post } from './endpoint/post.ts';
import { requireFinished } from './endpoint/reply.ts';
import { completionBody } from './endpoint/request.ts';
import { PartialAnswer } from './partialanswer.ts';
import { createIncrementer, type Incrementer } from './template/increment.ts';
import type { Renderer } from './template/renderer.ts';
import { findTemplateParser } from './template/templateparser.ts';
import { openedThought, splitThinking, type ThoughtTags } from './thinking.ts';
import { joinIds } from './tokens/ids.ts';
import { isAmbiguous } from './toolcalls/registry.ts';
import type { TurnClient, TurnReply } from './turnclient.ts';
import { sendWithinLimit, type TurnSampling } from './turnsampling.ts';

/** Number of last prompt tokens that are searched for an opening thought tag: `<think>` may be several tokens. */
const PROMPT_END_TOKENS = 5;

type LastTurn = { ids: Int32Array; message: Message; turn: number; ended: boolean };

export class TokenTurnClient implements TurnClient {
  #config: PolicyConfig;
  readonly #sampling: TurnSampling;
  readonly #renderer: Renderer;
  /**
   * Whether requests have `stop` texts. If so, the end of an answer is unknown, and no answer is continued: a `stop` text may begin in the
   * received part.
   */
  readonly #hasStop: boolean;
  #last: LastTurn | null = null;
  #incrementer: Incrementer | null = null;
  #prepared: { messages: number; prompt: Int32Array } | null = null;
  #partial = new PartialAnswer();
  #stream: CompletionStream | null = null;
  /** Complete answer that is not parsed yet, so that an error of the template's endpoint does not lose the answer. */
  #received: (CompletionReply & { asked: RequestedSampling }) | null = null;
  readonly #openedThoughts = new Map<string, ThoughtTags | false>();
  #templateParser: AnswerSyntax['parser'] | null = null;

  constructor(config: PolicyConfig, sampling: TurnSampling, renderer: Renderer) {
    this.#config = config;
    this.#sampling = sampling;
    this.#renderer = renderer;
    this.#hasStop = effectiveSampling(config).stop !== undefined;
  }

  async ask(messages: readonly Message[], tools: readonly ToolDefinition[], post: Post): Promise<TurnReply> {
    const prompt = await this.#promptFor(messages, tools, post);
    const opened = await this.#openedThought(prompt, post);
    this.#received ??= await this.#requestAnswer(messages, prompt, post);
    const { text, ...reply } = this.#received;
    const turn = (this.#last?.turn ?? 0) + 1;
    const message = parseAnswer(text, {
      withTools: tools.length > 0,
      parser: await this.#parserFor(text, opened, tools, post),
      opened,
      callId: (index) => nineLetters(turn, index),
    });
    // Some servers return no prompt ids. The request contained exactly `prompt`.
    const promptIds = reply.prompt_token_ids ?? prompt;
    const ended = reply.finish_reason !== 'length' && !this.#hasStop;
    this.#last = { ids: joinIds(promptIds, reply.generation_token_ids), message, turn, ended };
    this.#prepared = null;
    this.#received = null;
    this.#partial = new PartialAnswer();
    this.#stream = null;
    return { ...reply, message, prompt_token_ids: promptIds };
  }

  storedTokens(): number {
    return this.#received?.generation_token_ids.length ?? this.#partial.tokens;
  }

  generatedTokens(): number {
    return this.#received ? this.storedTokens() : this.#partial.tokens + (this.#stream?.tokens ?? 0);
  }

  stopStreaming(): void {
    this.#config = { ...this.#config, stream: 'off' };
  }

  async #promptFor(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    post: Post,
  ): Promise<Int32Array> {
    if (this.#prepared?.messages === messages.length) return this.#prepared.prompt;
    this.#received = null;
    let prompt: Int32Array;
    if (this.#last === null) prompt = await this.#renderer.render(messages, tools, post);
    else {
      const { ids, message } = this.#last;
      this.#incrementer ??= createIncrementer(this.#renderer, tools);
      const added = messages.slice(messages.lastIndexOf(message) + 1);
      const increment = await this.#incrementer.after({ ...this.#last, lastId: ids.at(-1) }, added, post);
      prompt = joinIds(ids, increment);
    }
    this.#prepared = { messages: messages.length, prompt };
    return prompt;
  }

  async #openedThought(prompt: Int32Array, post: Post): Promise<ThoughtTags | false> {
    const end = prompt.subarray(-PROMPT_END_TOKENS);
    const key = end.join();
    const opened = this.#openedThoughts.get(key) ?? openedThought(await this.#renderer.decode(end, post));
    this.#openedThoughts.set(key, opened);
    return opened;
  }

  async #requestAnswer(messages: readonly Message[], turnPrompt: Int32Array, post: Post) {
    const whole = await this.#sampling.forPrompt(messages, turnPrompt.length);
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
      const request = completionBody(this.#partial.configOf(this.#config), prompt, sampling);
      const body = await post('completions', request, stream);
      if (isEventStream(body)) stream.take(body);
      const rest = body.length === 0 || isEventStream(body) ? stream.end() : parseCompletion(body);
      requireFinished(rest.finish_reason);
      return rest;
    } catch (error) {
      if (!this.#hasStop && arePartsReliable(error)) this.#partial.append(stream.part());
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
    if (this.#config.tool_parser !== 'auto' || tools.length === 0) return this.#config.tool_parser;
    if (!isAmbiguous(splitThinking(text, opened).rest)) return 'auto';
    this.#templateParser ??= await findTemplateParser({ renderer: this.#renderer, tools, post });
    return this.#templateParser;
  }
}

/** Mistral's templates accept only ids of nine letters and digits. */
const nineLetters = (turn: number, index: number): string =>
  `c${turn.toString(36).padStart(4, '0')}${index.toString(36).padStart(4, '0')}`;

/** Returns whether the tokens before an error are usable. Garbage or an engine error in the stream makes them unusable. */
const arePartsReliable = (error: unknown): boolean =>
  !(error instanceof AnswerError) || error.kind === 'cut_short' || error.kind === 'aborted';
