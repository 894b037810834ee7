/** One rollout's side of the talk with a policy, in one of three token modes; transport and retries are the user's. */

import type { PolicyConfig } from '../records/runconfig.ts';
import { effectiveSampling } from '../records/sampling.ts';
import type { ToolParser } from '../records/toolparsers.ts';
import type { Message, RequestedSampling } from '../records/trajectory.ts';
import { parseAnswer } from './answer.ts';
import { type ChatStream, openChatStream } from './endpoint/chatstream.ts';
import { type CompletionReply, parseCompletion } from './endpoint/completion.ts';
import { type CompletionStream, openCompletionStream } from './endpoint/completionstream.ts';
import { AnswerError } from './endpoint/errors.ts';
import { isEventStream } from './endpoint/events.ts';
import type { Post } from './endpoint/post.ts';
import { type ModelReply, parseReply, requireFinished } from './endpoint/reply.ts';
import { chatBody, completionBody } from './endpoint/request.ts';
import { createPartialAnswer, joinedIds } from './partialanswer.ts';
import { createIncrementer, type Incrementer } from './template/increment.ts';
import { openRenderer, type Renderer } from './template/renderer.ts';
import { templateParser } from './template/templateparser.ts';
import { openedThought, splitThinking, type ThoughtTags } from './thinking.ts';
import { unmarkedCallIn } from './toolcalls/registry.ts';
import {
  createTurnSampling,
  sendHeldToLimit,
  type TurnClientDeps,
  type TurnSampling,
} from './turnsampling.ts';

export type TurnClient = {
  /**
   * Asks once. After a call that threw the same messages may be asked again: in mode `token-in` what came of the answer is kept
   * then and gone on from, else the speaker is as it was. `messages` only grow from call to call, and hold the message of
   * each reply as it was given. Throws what `post` throws, WireFault, RolloutFailure `policy_tokens`.
   */
  ask(messages: readonly Message[], tools: readonly object[], post: Post): Promise<TurnReply>;
  /** Tokens that are kept of an answer that was broken off; 0 when the next one begins anew. */
  keptTokens(): number;
  /** Tokens that came of the answer at hand, whole or not: for who measures speed. */
  generated(): number;
  /** No endpoint is asked for a stream from now on. */
  stopStreaming(): void;
};

/** An answer, and what its request alone asked for. `came`: tokens that a stream was seen to bring, where it told neither ids nor usage. */
export type TurnReply = ModelReply & { asked: RequestedSampling; streamedTokens?: number };

/** Throws UsageError `tokenizer` when the configuration names a folder that is none. */
export async function openTurnClient(config: PolicyConfig, who: TurnClientDeps): Promise<TurnClient> {
  const asking = createTurnSampling(config, who);
  if (config.token_mode !== 'token-in') return chatSpeaker(config, asking);
  return tokenSpeaker(config, asking, await openRenderer(config));
}

function chatSpeaker(first: PolicyConfig, asking: TurnSampling): TurnClient {
  let config = first;
  // Only mode `echo` needs the last answer's ids; the trajectory stores them in its own way.
  let last: ModelReply | null = null;
  let stream: ChatStream | null = null;
  return {
    async ask(messages, tools, post) {
      const [reply, asked] = await sendHeldToLimit(
        asking.forChat(messages),
        async (one) => {
          stream = openChatStream();
          const body = await post('chat', chatBody(config, messages, tools, last, one), stream);
          if (isEventStream(body)) stream.take(body);
          return body.length === 0 || isEventStream(body) ? stream.end() : parseReply(body);
        },
        null,
      );
      const streamedTokens = streamedTokensOf(stream, reply);
      // Limits and speed go by tokens: a server whose streams tell none is asked for whole answers.
      if (streamedTokens !== undefined && config.stream === 'auto') config = { ...config, stream: 'off' };
      stream = null;
      // Not its experts: those are the whole answer's bytes.
      if (config.token_mode === 'echo') last = { ...reply, routed_experts: null };
      return { ...reply, asked, ...(streamedTokens === undefined ? {} : { streamedTokens }) };
    },
    keptTokens: () => 0,
    generated: () => stream?.tokens ?? 0,
    stopStreaming() {
      config = { ...config, stream: 'off' };
    },
  };
}

/** Undefined where the answer itself tells its tokens, or came whole. */
function streamedTokensOf(stream: ChatStream | null, told: ModelReply): number | undefined {
  if (!stream?.finished || told.usage !== null || told.generation_token_ids !== null) return undefined;
  return stream.tokens;
}

/** Of the end of a prompt: enough for `<think>`, however it is cut into tokens; longer words are tokens of their own. */
const HEAD_TOKENS = 5;

type Said = { ids: Int32Array; message: Message; turn: number; ended: boolean };

/** All ids so far and what is new go to the completions endpoint: contiguous by construction. */
export function tokenSpeaker(first: PolicyConfig, asking: TurnSampling, renderer: Renderer): TurnClient {
  let config = first;
  let said: Said | null = null;
  let incrementer: Incrementer | null = null;
  /** Rendered once a turn, however often the turn is asked. */
  let prepared: { at: number; prompt: Int32Array } | null = null;
  const opened = openHeads(renderer);
  let bare: ToolParser | null = null;
  // With texts that end an answer, its last token says nothing; and one that begins in what is kept would not be found.
  const { stop } = effectiveSampling(first);

  /** Calls without markers are calls only if the template writes them so. */
  const parserFor = async (
    text: string,
    opens: ThoughtTags | false,
    tools: readonly object[],
    post: Post,
  ) => {
    if (config.tool_parser !== 'auto' || tools.length === 0) return config.tool_parser;
    if (unmarkedCallIn(splitThinking(text, opens).rest) === null) return 'auto';
    bare ??= await templateParser(renderer, tools, post);
    return bare;
  };
  let unfinished = createPartialAnswer();
  let stream: CompletionStream | null = null;

  const promptFor = async (
    messages: readonly Message[],
    tools: readonly object[],
    post: Post,
  ): Promise<Int32Array> => {
    if (prepared?.at === messages.length) return prepared.prompt;
    let prompt: Int32Array;
    if (said === null) prompt = await renderer.render(messages, tools, post);
    else {
      incrementer ??= createIncrementer(renderer, tools);
      const news = messages.slice(messages.lastIndexOf(said.message) + 1);
      const increment = await incrementer.after({ ...said, lastId: said.ids.at(-1) }, news, post);
      prompt = joinedIds(said.ids, increment);
    }
    prepared = { at: messages.length, prompt };
    return prompt;
  };
  /** Asks for what is left of the answer; what comes of it is kept when it is broken off. */
  const restOf = async (
    prompt: Int32Array,
    asked: RequestedSampling,
    post: Post,
  ): Promise<CompletionReply> => {
    stream = openCompletionStream();
    try {
      const body = await post(
        'completions',
        completionBody(unfinished.config(config), prompt, asked),
        stream,
      );
      if (isEventStream(body)) stream.take(body);
      const read = body.length === 0 || isEventStream(body) ? stream.end() : parseCompletion(body);
      requireFinished(read.finish_reason);
      return read;
    } catch (error) {
      if (stop === undefined && mayBeKept(error)) unfinished.keep(stream.part());
      stream = null;
      throw error;
    }
  };
  /** `asked` for the whole answer. */
  const wholeOf = async (
    sent: Int32Array,
    asked: RequestedSampling,
    post: Post,
  ): Promise<CompletionReply & { asked: RequestedSampling }> => {
    const rest = unfinished.rest(asked);
    if (rest === null) return { ...unfinished.cut(sent), asked };
    const before = unfinished.tokens;
    const prompt = joinedIds(sent, unfinished.ids);
    const [read, held] = await sendHeldToLimit(rest, (one) => restOf(prompt, one, post), prompt.length);
    const most = typeof held.max_tokens === 'number' ? { max_tokens: held.max_tokens + before } : {};
    return { ...unfinished.whole(read, sent), asked: { ...asked, ...most } };
  };

  return {
    async ask(messages, tools, post) {
      const sent = await promptFor(messages, tools, post);
      const opensThought = await opened(sent, post);
      const asked = await asking.forPrompt(messages, sent.length);
      const { text, ...read } = await wholeOf(sent, asked, post);
      const turn = (said?.turn ?? 0) + 1;
      const message = parseAnswer(text, {
        withTools: tools.length > 0,
        parser: await parserFor(text, opensThought, tools, post),
        opened: opensThought,
        callId: (place) => nineLetters(turn, place),
      });
      // A server that says nothing of the prompt was still asked exactly this.
      const prompt = read.prompt_token_ids ?? sent;
      const ended = read.finish_reason !== 'length' && stop === undefined;
      said = { ids: joinedIds(prompt, read.generation_token_ids), message, turn, ended };
      prepared = null;
      unfinished = createPartialAnswer();
      stream = null;
      return { ...read, message, prompt_token_ids: prompt };
    },
    keptTokens: () => unfinished.tokens,
    generated: () => unfinished.tokens + (stream?.tokens ?? 0),
    stopStreaming() {
      config = { ...config, stream: 'off' };
    },
  };
}

/** Templates of Mistral take ids of nine letters and digits, and no others. */
const nineLetters = (turn: number, place: number): string =>
  `c${turn.toString(36).padStart(4, '0')}${place.toString(36).padStart(4, '0')}`;

/** What thought the head of the answer, as the template wrote it, opens: asked once for each head. */
function openHeads(renderer: Renderer): (prompt: Int32Array, post: Post) => Promise<ThoughtTags | false> {
  const known = new Map<string, ThoughtTags | false>();
  return async (prompt, post) => {
    const head = prompt.subarray(-HEAD_TOKENS);
    const key = head.join();
    const opens = known.get(key) ?? openedThought(await renderer.decode(head, post));
    known.set(key, opens);
    return opens;
  };
}

/** An error in the midst, or nonsense: the engine does not stand by what came before. An abort, a cut or silence says nothing against it. */
const mayBeKept = (error: unknown): boolean =>
  !(error instanceof AnswerError) || error.kind === 'cut_short' || error.kind === 'aborted';
