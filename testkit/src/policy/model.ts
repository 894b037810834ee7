/** The scripted model: decides the answer to a request, its delay and its fault, independently of HTTP. */
import { asksForKeystrokes, declaredTools } from './agenttools.ts';
import { type Chooser, openChooser, rolloutName } from './choice.ts';
import { type Delay, delayMs } from './delay.ts';
import type { Fault, FaultBook } from './faults.ts';
import { brokenOff, type Generation, generate, generationSeed, restOf } from './generation.ts';
import { type Dialect, refusalOf, spokenOf } from './overflow.ts';
import { openPrompter, type Prompt, type Prompter } from './prompt.ts';
import { hash32 } from './random.ts';
import { type Asking, BadRequest, type ChatRequest, type CompletionRequest } from './request.ts';
import type { Script, Turn } from './script.ts';
import type { ChatMessage, ChatTemplate } from './template.ts';
import { type Tokenizer, type Tokens, tokensOf } from './tokenizer.ts';
import { renderTurn, type ToolOffer, type TurnStyle, type TurnText } from './turntext.ts';
import { type Answer, answerId, promptJson } from './wire.ts';

export type ModelOptions = {
  script: Script;
  /** Null: tokens are not counted, and usage is an estimate of 4 characters per token. */
  tokens: { tokenizer: Tokenizer; template: ChatTemplate } | null;
  /** Limit of tokens for prompt and answer together; null: no limit. */
  contextLimit: number | null;
  /** Wording of the error for a request that does not fit into the context. */
  dialect: Dialect;
  delay: Delay;
  reasoning: 'content' | 'field';
  seed: number;
  faults: FaultBook;
};

/** Rollout and turn of a request, which are read before any failure. */
export type Caller = { rollout: string; header: string | undefined; turn: number; firstUser: string };

export type Reply = {
  conversation: number;
  variant: number;
  fault: Fault | null;
  delayMs: number;
  /** Computed only on demand, so that a request hit by a fault costs no tokenising. Throws BadRequest on context overflow. */
  answer(): Answer;
};

export type Model = ReturnType<typeof openModel>;

const NO_TOKENS: Tokens = { ids: new Int32Array(0), json: '' };

export function openModel(options: ModelOptions) {
  const chooser = openChooser(options.script);
  const prompter = options.tokens && openPrompter(options.tokens.tokenizer, options.tokens.template);
  return {
    prompter,
    tokenizer: options.tokens?.tokenizer ?? null,
    chatCaller,
    chat: (request: ChatRequest, caller: Caller): Reply =>
      reply(options, chooser, caller, request, {
        tools: request.tools,
        firstAssistant: request.messages.find((message) => message.role === 'assistant')?.content ?? null,
        lastMessage: request.messages.at(-1)?.content ?? '',
        opening: openingOf(request.messages),
        prompt: () => prompter?.fromMessages(request.messages, request.tools) ?? null,
        counted: false,
        characters: () => request.messages.reduce((sum, { content }) => sum + (content?.length ?? 0) + 16, 0),
      }),
    /** Token-in: the history is parsed from the prompt itself. */
    completion(
      request: CompletionRequest,
      header: string | undefined,
    ): { caller: Caller; reply: () => Reply } {
      if (!prompter || !options.tokens)
        throw new BadRequest('this server runs without tokens: use chat completions');
      const { tokenizer } = options.tokens;
      const tokens =
        typeof request.prompt === 'string' ? tokenizer.encode(request.prompt) : tokensOf(request.prompt);
      const read = readHistory(tokens.ids, tokenizer, prompter);
      const caller = callerOf(header, read.turn, read.firstUser);
      const asked = {
        ...read,
        prompt: () => ({ runs: [tokens], length: tokens.ids.length }),
        characters: () => 0,
        counted: typeof request.prompt !== 'string',
      };
      return { caller, reply: () => reply(options, chooser, caller, request, asked) };
    },
  };
}

type History = {
  tools: readonly ToolOffer[];
  firstAssistant: string | null;
  lastMessage: string;
  opening: string;
  prompt: () => Prompt | null;
  characters: () => number;
  /** Token-in: the part of the answer that the prompt already contains. */
  begun?: Int32Array;
  /** The prompt came as ids. */
  counted: boolean;
};

function reply(
  options: ModelOptions,
  chooser: Chooser,
  caller: Caller,
  asking: Asking,
  history: History,
): Reply {
  const { script, seed, faults } = options;
  const { rollout, turn } = caller;
  if (script.model !== undefined && asking.model !== null && asking.model !== script.model) {
    return failing({ kind: 'model_unknown', probability: 1 });
  }
  const style: TurnStyle = {
    fence: script.fence,
    sentinel: script.sentinel,
    reasoning: options.reasoning,
    keystrokes: asksForKeystrokes(caller.firstUser),
  };
  const asked = {
    rollout: caller.header,
    firstUser: caller.firstUser,
    turn,
    firstAssistant: history.firstAssistant,
    lastMessage: history.lastMessage,
    opening: history.opening,
  };
  const sounds = (first: Turn, text: string) => renderTurn(first, history.tools, style).content === text;
  const chosen = chooser.choose(asked, sounds);
  const name = rolloutName(caller.header);
  const target = { ...caller, instance: name?.instanceId ?? null, index: name?.index ?? null };
  const fault = faults.pick(target, chosen?.turn.fault);
  if (!chosen && !fault) {
    const start = JSON.stringify(caller.firstUser.slice(0, 80));
    throw new BadRequest(
      `no conversation of the script matches the first user message, which begins ${start}`,
    );
  }
  const text = renderTurn(chosen?.turn ?? FAULT_ONLY, history.tools, style);
  const answerSeed = generationSeed(rollout, turn, seed);
  const expected = Math.ceil(text.raw.length / 4);
  return {
    conversation: chosen?.conversation ?? -1,
    variant: chosen?.variant ?? -1,
    fault,
    delayMs: chosen?.turn.delay_ms ?? delayMs(options.delay, answerSeed, expected),
    answer: () => compose(options, caller, asking, history, text, answerSeed, fault),
  };
}

/** The text of a turn that has only a fault, for the requests that the fault does not hit. */
const FAULT_ONLY: Turn = { text: 'There is nothing to say.', repeat: 1 };

const failing = (fault: Fault): Reply => ({
  conversation: -1,
  variant: -1,
  fault,
  delayMs: 0,
  answer: () => {
    throw new BadRequest(`the fault ${fault.kind} has no answer`);
  },
});

function compose(
  { tokens, contextLimit, dialect }: ModelOptions,
  caller: Caller,
  asking: Asking,
  history: History,
  text: TurnText,
  seed: number,
  fault: Fault | null,
): Answer {
  const prompt = history.prompt();
  const promptLength = prompt?.length ?? Math.ceil(history.characters() / 4);
  const room = contextLimit === null ? Number.POSITIVE_INFINITY : contextLimit - promptLength;
  if (contextLimit !== null) {
    const sizes = { limit: contextLimit, prompt: promptLength, most: asking.maxTokens };
    const refusal = refusalOf(dialect, sizes, history.counted);
    if (refusal) throw refusal;
  }
  const base = {
    id: answerId('chatcmpl', `${caller.rollout}#${caller.turn}`),
    created: Math.floor(Date.now() / 1000),
    model: asking.model ?? 'scripted',
    wanted: asking.wanted,
    promptLength,
    prompt,
  };
  if (!tokens || !prompt) {
    const generation: Generation = { text, tokens: NO_TOKENS, logProbs: [] };
    const completionLength = Math.ceil(text.raw.length / 4) + 1;
    return { ...base, generation, promptIds: null, completionLength, tokenIds: null, logProbs: null };
  }
  const { begun = new Int32Array(0) } = history;
  const budget = begun.length + Math.min(asking.maxTokens ?? Number.POSITIVE_INFINITY, room);
  const endId = tokens.tokenizer.idOf('<|im_end|>');
  const whole = generate(text, tokens.tokenizer, endId, budget, seed);
  const rest = restOf(whole, begun, tokens.tokenizer);
  if (rest === null) throw new BadRequest('the prompt ends with an answer that was not begun here', 'prompt');
  const generation = fault?.kind === 'aborted' && history.begun ? brokenOff(rest, tokens.tokenizer) : rest;
  const answer: Answer = {
    ...base,
    generation,
    promptIds: asking.wanted.tokenIds ? promptJson(prompt) : null,
    completionLength: generation.tokens.ids.length,
    tokenIds: asking.wanted.tokenIds ? generation.tokens.json : null,
    logProbs: generation.logProbs,
  };
  return fault ? spoil(answer, fault, caller.turn) : answer;
}

/** Faults of the tokens, not of the transport. */
function spoil(answer: Answer, fault: Fault, turn: number): Answer {
  const { tokenIds, promptIds, logProbs } = answer;
  if (fault.kind === 'missing_token_ids') return { ...answer, tokenIds: null, promptIds: null };
  if (fault.kind === 'aborted') {
    const { generation } = answer;
    return { ...answer, generation: { ...generation, text: { ...generation.text, finish: 'abort' } } };
  }
  if (fault.kind === 'short_log_probs') return { ...answer, logProbs: logProbs?.slice(0, -1) ?? null };
  if (fault.kind === 'short_token_ids' && tokenIds !== null) {
    return { ...answer, tokenIds: tokenIds.slice(0, Math.max(0, tokenIds.lastIndexOf(','))) };
  }
  if (fault.kind === 'non_contiguous' && promptIds !== null && turn > 0) {
    // Changes the second token, as if a server had rendered the history again.
    return {
      ...answer,
      promptIds: promptIds.replace(/^(\d+),(\d+)/, (_, a, b) => `${a},${Number(b) === 9 ? 10 : 9}`),
    };
  }
  return answer;
}

/** The message of a fault of kind `context_overflow`. */
export const anyOverflow = (): BadRequest => spokenOf({ limit: 8192, prompt: 9000, most: 1 });

function chatCaller(messages: readonly ChatMessage[], header: string | undefined): Caller {
  let turn = 0;
  for (const message of messages) if (message.role === 'assistant') turn++;
  return callerOf(header, turn, messages.find((message) => message.role === 'user')?.content ?? '');
}

function callerOf(header: string | undefined, turn: number, firstUser: string): Caller {
  return { rollout: header ?? `unnamed-${hash32(firstUser).toString(16)}`, header, turn, firstUser };
}

function openingOf(messages: readonly ChatMessage[]): string {
  const first = messages.findIndex(({ role }) => role === 'assistant');
  const before = first === -1 ? messages : messages.slice(0, first);
  return before.map(({ content }) => content ?? '').join('\n');
}

/** Counts the answers in a prompt and finds its first user message, by the markers of the chat template. */
function readHistory(ids: Int32Array, tokenizer: Tokenizer, prompter: Prompter) {
  const start = tokenizer.idOf('<|im_start|>');
  const assistant = tokenizer.encode('assistant\n').ids;
  const block = (at: number): string => {
    const end = ids.indexOf(prompter.end.id, at);
    return tokenizer.decode(ids.subarray(at + 1, end === -1 ? ids.length : end));
  };
  let turn = -1;
  let firstUser: string | null = null;
  let firstAssistant: string | null = null;
  let tools: ToolOffer[] = [];
  let begun = new Int32Array(0);
  let last = -1;
  const opening: string[] = [];
  for (let at = ids.indexOf(start); at !== -1; at = ids.indexOf(start, at + 1)) {
    if (assistant.every((id, i) => ids[at + 1 + i] === id)) {
      if (++turn === 0) firstAssistant = block(at).slice('assistant\n'.length);
      begun = ids.slice(at + 1 + assistant.length);
      continue;
    }
    last = at;
    if (turn === -1) {
      const text = block(at);
      opening.push(text);
      if (text.startsWith('system\n') && tools.length === 0) tools = declaredTools(text);
      else if (text.startsWith('user\n')) firstUser ??= text.slice('user\n'.length);
    }
  }
  // A text without chat markers is one question, for example from a probe of the route.
  if (turn === -1 && !ids.includes(start)) {
    turn = 0;
    firstUser = tokenizer.decode(ids);
  }
  if (turn === -1)
    throw new BadRequest('the prompt has no head of an answer: expected <|im_start|>assistant', 'prompt');
  const lastMessage = last === -1 ? '' : block(last);
  return {
    turn,
    firstUser: firstUser ?? '',
    firstAssistant,
    lastMessage,
    opening: opening.join('\n'),
    tools,
    begun,
  };
}
