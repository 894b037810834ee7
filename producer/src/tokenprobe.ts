/**
 * Whether a training run on an endpoint can be contiguous, tried before anything is queued: three turns of text and three
 * with tools in the run's own token mode, held to the trainer's rule. What breaks here would break in every rollout.
 */
import {
  addressOf,
  authorizationAt,
  errorMessage,
  type Message,
  openLedger,
  openSpeaker,
  type PolicyConfig,
  type PolicyKey,
  type Post,
  RolloutFailure,
  recordTokens,
  UsageError,
  WireFault,
} from '@swefarm/shared';
import type { Finding } from './doctor.ts';

export type TokenProbeOptions = { config: PolicyConfig; apiKey: PolicyKey | null; signal: AbortSignal };

const TURNS = 3;
const TIMEOUT_MS = 120_000;
/** Room for a thought. */
const MOST_TOKENS = 256;

const TOOL = {
  type: 'function',
  function: {
    name: 'bash',
    description: 'Run one command.',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
};

/** One finding for each talk, `fail` when a trainer could not use it. Never throws for what the endpoint does. */
export async function probeTokens(url: string, options: TokenProbeOptions): Promise<Finding[]> {
  const { config } = options;
  const talks: [name: string, ask: string, tools: readonly object[]][] = [
    [
      'text',
      'Think first. Then answer in one sentence: which shell command lists the files of a folder?',
      [],
    ],
    ['tools', 'List the files of this folder with the tool bash, then say what there is.', [TOOL]],
  ];
  const findings: Finding[] = [];
  for (const [name, ask, tools] of talks) {
    findings.push(await guarded(config, `tokens (${name})`, () => talk(url, options, ask, tools)));
  }
  const healthy = findings.every(({ status }) => status === 'ok');
  if (healthy && config.token_mode === 'text') {
    findings.push(await guarded(config, 'tokens (thinking)', () => keepsThinking(url, options)));
  }
  return findings;
}

/** Three turns, whose answers go back as the worker sends them. Throws RolloutFailure `policy_tokens` at the first break. */
async function talk(
  url: string,
  { config, apiKey, signal }: TokenProbeOptions,
  ask: string,
  tools: readonly object[],
): Promise<string> {
  const sampling = {
    ...config.sampling,
    max_tokens: Math.min(MOST_TOKENS, config.sampling.max_tokens ?? MOST_TOKENS),
  };
  const speaker = await openSpeaker({ ...config, sampling, require_tokens: true });
  const post = postTo(url, apiKey, signal);
  const ledger = openLedger();
  const messages: Message[] = [
    { role: 'system', content: 'You work in a shell.' },
    { role: 'user', content: ask },
  ];
  let thoughts = 0;
  let calls = 0;
  for (let turn = 1; turn <= TURNS; turn++) {
    const reply = await speaker.ask(messages, tools, post);
    recordTokens(ledger, reply, turn, true);
    messages.push(reply.message, ...observations(reply.message));
    if (reply.message.reasoning_content || reply.message.content?.includes('</think>')) thoughts++;
    calls += reply.message.tool_calls?.length ?? 0;
  }
  return `${TURNS} turns in mode ${config.token_mode} are contiguous, ${ledger.length} tokens (${thoughts} with thinking, ${calls} tool calls)`;
}

function observations({ tool_calls: calls = [] }: Message): Message[] {
  if (calls.length === 0) return [{ role: 'user', content: 'README.md\nsrc\n\nAnd what would you do next?' }];
  return calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'README.md\nsrc' }));
}

/** A thought in an earlier answer must be in the prompt: a model that thinks now and then would lose it otherwise. */
async function keepsThinking(url: string, { config, apiKey, signal }: TokenProbeOptions): Promise<string> {
  const speaker = await openSpeaker({
    ...config,
    sampling: { ...config.sampling, max_tokens: 1 },
    require_tokens: true,
  });
  const post = postTo(url, apiKey, signal);
  const promptLength = async (answer: Message): Promise<number> => {
    const more: Message[] = [answer, { role: 'user', content: 'And?' }];
    const reply = await speaker.ask([{ role: 'user', content: 'Well?' }, ...more], [], post);
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

async function guarded(
  config: PolicyConfig,
  subject: string,
  probe: () => Promise<string>,
): Promise<Finding> {
  try {
    return { status: 'ok', subject, detail: await probe(), remedy: null };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    return {
      status: 'fail',
      subject,
      detail: errorMessage(error).slice(0, 400),
      remedy: remedyFor(config, error),
    };
  }
}

function remedyFor({ token_mode: mode, tokenizer }: PolicyConfig, error: unknown): string {
  if (error instanceof Unanswered) {
    const tokenizing = error.route === 'tokenize' && tokenizer === null;
    return tokenizing && error.status === 404
      ? "this server has no /tokenize for chats: add --tokenizer FOLDER with the model's tokenizer, the same on every worker"
      : 'check the URL, the model and the log of the endpoint';
  }
  if (!(error instanceof RolloutFailure || error instanceof WireFault))
    return 'start the endpoint, or check its URL';
  if (mode !== 'token-in') return 'use --token-mode token-in, which sends token ids and not text';
  return 'token-in needs a completions endpoint that takes and returns token ids (vLLM: return_token_ids and logprobs)';
}

class Unanswered extends Error {
  override readonly name = 'Unanswered';
  readonly route: string;
  readonly status: number;
  constructor(route: string, status: number, text: string) {
    super(`/${route}: HTTP ${status}: ${text.slice(0, 200)}`);
    this.route = route;
    this.status = status;
  }
}

function postTo(url: string, apiKey: PolicyKey | null, signal: AbortSignal): Post {
  return async (route, body) => {
    const address = addressOf(url, route);
    const response = await fetch(address, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/json', ...authorizationAt(apiKey, address) },
      body: Buffer.concat(body.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece))),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    if (!response.ok) throw new Unanswered(route, response.status, await response.text());
    return Buffer.from(await response.arrayBuffer());
  };
}
