/**
 * Tests before a run is queued whether an endpoint returns contiguous tokens: each prompt must continue the tokens of the earlier turns.
 * The probe has one conversation of text and, unless the run uses fenced commands, one with tools.
 */
import {
  AnswerError,
  ContextOverflowError,
  openLedger,
  openRenderer,
  openTurnClient,
  recordTokens,
  type TokenLimits,
  type TurnClient,
} from '@swefarm/policy';
import {
  effectiveSampling,
  errorMessage,
  type Finding,
  type Message,
  type PolicyConfig,
  RolloutFailure,
  reshapingKeys,
  type ToolDefinition,
  UsageError,
} from '@swefarm/shared';
import { type LogProbKind, type LogProbs, probeLogProbs } from './logprobs.ts';
import { ProbeRefused, type ProbeTarget, postTo, readServedLength } from './probewire.ts';
import { describeMissingCall, MOST_ANSWERS, NUDGE, type ProbeReply } from './toolcallprobe.ts';

export type TokenProbeOptions = ProbeTarget & {
  /** `tool`: the model must make a readable call; `fenced`: the requests have no tools; absent: a call is possible, not required. */
  action?: 'fenced' | 'tool';
  /** Limit of the run on tokens of prompt and answer; null: none. */
  contextLimit?: number | null;
  /** Limit of the run on tokens after the first prompt; null: none. */
  sequenceBudget?: number | null;
  problem?: string;
  /** Whether the trainer corrects for log-probabilities of a distribution other than the sampled one. */
  acceptRawLogprobs?: boolean;
};

const TURNS = 3;

const TOOL: ToolDefinition = {
  type: 'function',
  function: {
    name: 'bash',
    description: 'Run one command.',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
};

/** `silent`: the model called no tool at this endpoint, perhaps by chance; it may call one at another endpoint. */
export type TokenFinding = Finding & { silent?: true; logprobs?: LogProbKind };

/**
 * Returns a finding for each conversation and, if none fails, for thinking (mode `text` only), context and log-probabilities. Throws
 * UsageError for an unusable tokenizer folder, and never throws for faults of the endpoint.
 */
export async function probeTokens(url: string, options: TokenProbeOptions): Promise<TokenFinding[]> {
  const config = { ...options.config, require_tokens: true };
  const asking = { ...options, config };
  const length = await readServedLength(url, asking);
  const limits = {
    contextLimit: options.contextLimit ?? null,
    sequenceBudget: options.sequenceBudget ?? null,
    modelLength: async () => length,
  };
  const talks: [name: string, ask: string, tools: readonly ToolDefinition[]][] = [
    [
      'text',
      'Think first. Then answer in one sentence: which shell command lists the files of a folder?',
      [],
    ],
  ];
  // With fenced commands the run sends no tools, and the server may refuse them.
  if (options.action !== 'fenced')
    talks.push([
      'tools',
      'List the files of this folder with the tool bash, then describe what there is.',
      [TOOL],
    ]);
  const findings: TokenFinding[] = [];
  for (const [name, ask, tools] of talks) {
    findings.push(
      await toFinding(config, `tokens (${name})`, () => probeConversation(url, asking, limits, ask, tools)),
    );
  }
  if (findings.some(({ status }) => status === 'fail')) return findings;
  if (config.token_mode === 'text') {
    findings.push(await toFinding(config, 'tokens (thinking)', () => probeThinking(url, asking, limits)));
  }
  findings.push(await toFinding(config, 'context', () => probeContext(url, asking, limits)));
  const logProbs = await probeLogProbs(url, asking);
  const judged = await toFinding(config, 'logprobs', async () => judgeLogProbs(logProbs, asking));
  return [...findings, { ...judged, logprobs: logProbs.verdict }];
}

/** Ends a check with the finding `warn` or `fail`. */
class ProbeProblem extends Error {
  override readonly name = 'ProbeProblem';
  readonly status: 'warn' | 'fail';
  readonly remedy: string;
  readonly silent: boolean;
  constructor(status: 'warn' | 'fail', message: string, remedy: string, silent = false) {
    super(message);
    this.status = status;
    this.remedy = remedy;
    this.silent = silent;
  }
}

/** Rollout id of the probe's conversations. The seeds of the requests are derived from it. */
const PROBE = 'probe.probe.0';

/**
 * Takes three turns, or up to {@link MOST_ANSWERS} until the model calls a tool, with the settings of the run. Throws RolloutFailure
 * `policy_tokens` when tokens are not contiguous, and ProbeProblem for other findings.
 */
async function probeConversation(
  url: string,
  target: TokenProbeOptions,
  limits: TokenLimits,
  question: string,
  tools: readonly ToolDefinition[],
): Promise<string> {
  const { config } = target;
  const client = await openTurnClient(config, { rolloutId: PROBE, limits });
  const post = postTo(url, target);
  const ledger = openLedger();
  const messages: Message[] = [
    { role: 'system', content: 'You work in a shell.' },
    { role: 'user', content: question },
  ];
  const mustCall = tools.length > 0 && target.action === 'tool';
  const replies: ProbeReply[] = [];
  let thoughts = 0;
  let calls = 0;
  for (let turn = 1; turn <= TURNS || (mustCall && calls === 0 && turn <= MOST_ANSWERS); turn++) {
    const reply = await unstreamedIfNeeded(target, client, () => client.ask(messages, tools, post)).catch(
      (error: unknown) => {
        if (turn === 1 || !isFull(error)) throw error;
        if (turn > TURNS) return null;
        throw new ProbeProblem(
          'warn',
          `${turn - 1} answers fill the context, ${turn - 2} of ${TURNS - 1} transitions could be tried: ${errorMessage(error)}`,
          'set --max-tokens, so that one answer leaves room for the next',
        );
      },
    );
    if (reply === null) break;
    recordTokens(ledger, reply, turn, true);
    messages.push(reply.message, ...observations(reply.message, mustCall ? NUDGE : undefined));
    replies.push({ message: reply.message, cut: reply.finish_reason === 'length' });
    if (reply.message.reasoning_content || reply.message.content?.includes('</think>')) thoughts++;
    calls += reply.message.tool_calls?.length ?? 0;
  }
  if (mustCall && calls === 0) {
    const { why, detail, remedy } = describeMissingCall(config, replies);
    throw new ProbeProblem(why === 'begun' ? 'fail' : 'warn', detail, remedy, why === 'silent');
  }
  return `${replies.length} turns in mode ${config.token_mode} are contiguous, ${ledger.length} tokens (${thoughts} with thinking, ${calls} tool calls)`;
}

/** Like a worker, asks for a whole answer if the endpoint refuses to stream token ids (as SGLang does for chats). */
async function unstreamedIfNeeded<T>({ config }: ProbeTarget, client: TurnClient, ask: () => Promise<T>) {
  try {
    return await ask();
  } catch (error) {
    if (config.stream !== 'auto' || !(error instanceof ProbeRefused && error.refusesStream)) throw error;
    client.stopStreaming();
    return await ask();
  }
}

const isFull = (error: unknown): boolean =>
  error instanceof ContextOverflowError || (error instanceof AnswerError && error.kind === 'no_room');

function observations(
  { tool_calls: calls = [] }: Message,
  next = 'README.md\nsrc\n\nAnd what would you do next?',
): Message[] {
  if (calls.length === 0) return [{ role: 'user', content: next }];
  return calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'README.md\nsrc' }));
}

async function probeContext(url: string, target: TokenProbeOptions, limits: TokenLimits): Promise<string> {
  const lengths = [limits.contextLimit, await limits.modelLength()].filter((limit) => limit !== null);
  const { max_tokens: wanted } = effectiveSampling(target.config);
  if (lengths.length === 0) {
    const unknown = 'the limit on tokens of prompt and answer is not known (no max_model_len at /models)';
    // Only the mode token-in without --max-tokens needs the length that the server accepts.
    if (target.config.token_mode !== 'token-in' || wanted !== undefined) return unknown;
    throw new ProbeProblem('warn', unknown, 'set --max-tokens or --context-limit');
  }
  const limit = Math.min(...lengths);
  const prompt = await promptTokens(url, target);
  const most = wanted ?? 1;
  const sizes = `${prompt === null ? 'a first prompt' : `a first prompt of ${prompt} tokens`} and an answer of up to ${most}`;
  if ((prompt ?? 1) + most <= limit) return `${sizes} have room in ${limit} tokens`;
  const room = limit - (prompt ?? 1);
  throw new ProbeProblem(
    'fail',
    `${sizes} have no room in ${limit} tokens`,
    room > 0
      ? `set --max-tokens to at most ${room}, or serve the model with a longer context (max_model_len)`
      : 'serve the model with a longer context (max_model_len), or raise --context-limit',
  );
}

/** Returns the number of tokens of the prompt with the longest problem; null if the prompt cannot be rendered. */
async function promptTokens(url: string, target: TokenProbeOptions): Promise<number | null> {
  const renderer = await openRenderer(target.config);
  const messages: Message[] = [
    { role: 'system', content: 'You work in a shell.' },
    { role: 'user', content: target.problem ?? 'List the files.' },
  ];
  try {
    return (await renderer.render(messages, target.action === 'fenced' ? [] : [TOOL], postTo(url, target)))
      .length;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    return null;
  }
}

function judgeLogProbs({ verdict, detail }: LogProbs, target: TokenProbeOptions): string {
  const changed = reshapingKeys(effectiveSampling(target.config));
  const found = `logprobs: ${verdict} (${detail})`;
  if (changed.length === 0 || verdict === 'processed') return found;
  const reason = `${found}, and the run samples with another ${changed.join(', ')}`;
  if (verdict === 'unknown')
    throw new ProbeProblem(
      'warn',
      reason,
      'make sure that the server gives processed log-probabilities (vLLM: --logprobs-mode)',
    );
  throw new ProbeProblem(
    target.acceptRawLogprobs ? 'warn' : 'fail',
    reason,
    'serve with --logprobs-mode processed_logprobs (vLLM), sample without changes (temperature 1, no top_p, top_k or min_p), or pass --accept-raw-logprobs if the trainer corrects for it',
  );
}

/** Tests whether the chat template includes the thoughts of earlier answers. Throws RolloutFailure `policy_tokens` if it does not. */
async function probeThinking(url: string, target: ProbeTarget, limits: TokenLimits): Promise<string> {
  const { config } = target;
  const short = { ...config, sampling: { ...config.sampling, max_tokens: 1 } };
  const client = await openTurnClient(short, { rolloutId: PROBE, limits });
  const post = postTo(url, target);
  const promptLength = async (answer: Message): Promise<number> => {
    const more: Message[] = [answer, { role: 'user', content: 'And?' }];
    const messages: Message[] = [{ role: 'user', content: 'Well?' }, ...more];
    const reply = await unstreamedIfNeeded(target, client, () => client.ask(messages, [], post));
    return reply.prompt_token_ids?.length ?? 0;
  };
  const thought = 'The answer wants some thought, and the thought some words.';
  const plain = await promptLength({ role: 'assistant', content: 'Yes.' });
  const lengths = [
    await promptLength({ role: 'assistant', content: 'Yes.', reasoning_content: thought }),
    await promptLength({ role: 'assistant', content: `<think>\n${thought}\n</think>\n\nYes.` }),
  ];
  if (Math.max(...lengths) > plain) return 'thinking stays in the history';
  throw new RolloutFailure('policy_tokens', 'the chat template drops the thinking of earlier answers');
}

async function toFinding(
  config: PolicyConfig,
  subject: string,
  probe: () => Promise<string>,
): Promise<TokenFinding> {
  try {
    return { status: 'ok', subject, detail: await probe(), remedy: null };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const status = error instanceof ProbeProblem ? error.status : 'fail';
    const remedy = error instanceof ProbeProblem ? error.remedy : remedyFor(config, error);
    const silent = error instanceof ProbeProblem && error.silent ? { silent: true as const } : {};
    return { status, subject, detail: errorMessage(error).slice(0, 400), remedy, ...silent };
  }
}

function remedyFor({ token_mode: mode, tokenizer }: PolicyConfig, error: unknown): string {
  if (isFull(error)) return 'serve the model with a longer context (max_model_len), or lower --max-tokens';
  if (error instanceof ProbeRefused) {
    if (error.remedy !== null) return error.remedy;
    const tokenizing = error.route === 'tokenize' && tokenizer === null;
    return tokenizing && error.status === 404
      ? "this server has no /tokenize for chats: add --tokenizer FOLDER with the model's tokenizer, the same on every worker"
      : 'check the URL, the model and the log of the endpoint';
  }
  if (!(error instanceof RolloutFailure || error instanceof AnswerError))
    return 'start the endpoint, or check its URL';
  if (error instanceof AnswerError && error.kind === 'template')
    return 'the chat template cannot be continued by appending: use --token-mode echo where the server pins the prefix, or serve and render another chat template';
  if (mode !== 'token-in') return 'use --token-mode token-in, which sends token ids and not text';
  return 'token-in needs a completions endpoint that takes and returns token ids (vLLM: return_token_ids and logprobs)';
}
