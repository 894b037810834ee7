/** The scripted policy server: an OpenAI-compatible endpoint on loopback that answers by a script. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { errorMessage, sleepAtMost, UsageError } from '@swefarm/shared';
import type { z } from 'zod';
import { createListener, type Listener } from '../listener.ts';
import { Delay } from './delay.ts';
import { EngineOptions, openEngine } from './engine.ts';
import { type FaultRule, type FaultRuleInput, isBareRefusal, openFaultBook, readRules } from './faults.ts';
import { anyOverflow, type Caller, openModel, type Reply } from './model.ts';
import type { Dialect } from './overflow.ts';
import { BadRequest, needsNumber, readChatRequest, readCompletionRequest } from './request.ts';
import { type Desk, isAllowed, readStats, serveRest } from './routes.ts';
import { loadScript, readScript, type ScriptInput } from './script.ts';
import { openStats, type PolicyStats } from './stats.ts';
import { loadTemplate } from './template.ts';
import { loadTokenizer } from './tokenizer.ts';
import { sendAnswer, sendError, sendEvents, sendFault } from './transport.ts';
import {
  type Answer,
  CHUNK_TOKENS,
  chatBody,
  chatEvents,
  completionBody,
  completionEvents,
  digestOf,
} from './wire.ts';

export type ScriptedPolicyOptions = {
  /** A script, or the path of one. */
  script: ScriptInput | string;
  /** 0 (default): a free one. */
  port?: number;
  host?: string;
  /** `plain` (default), `strips-thinking`, or the path of a jinja file. */
  template?: string;
  /** Path of a tokenizer.json with <|im_start|> and <|im_end|>; ours when absent. */
  tokenizer?: string;
  /** False: tokens are not counted and usage is an estimate. Faster, for clients that need no ids. */
  tokens?: boolean;
  contextLimit?: number;
  /** Wording of the error for a request that does not fit; absent: vLLM 0.9's. SGLang's also refuses a non-numeric `max_tokens`. */
  dialect?: Dialect;
  /** Replaces the script's delay. */
  delay?: Partial<Delay>;
  faults?: readonly FaultRuleInput[];
  /** Field of the thinking: the text (default) or `reasoning_content`. */
  reasoning?: 'content' | 'field';
  /** Callers must send it as a bearer token. */
  apiKey?: string;
  seed?: number;
  /** False: refuses requests with pictures, as vLLM does for a model without image input. */
  pictures?: boolean;
  /** Sent with every answer as x-policy-version; no header when absent. */
  version?: string;
  /** Answers take as long as on an engine with this KV cache, which preempts; its load is in /metrics. */
  engine?: z.input<typeof EngineOptions>;
  /** Lists every answer with a digest of its ids in the statistics. */
  record?: boolean;
};

export type ScriptedPolicy = AsyncDisposable & {
  /** Base URL for clients, ending in /v1. */
  readonly url: string;
  readonly port: number;
  stats(): PolicyStats;
  /** Replaces the fault rules; an empty list ends all faults. A `refuse` without conditions stops listening until the next call. */
  setFault(...rules: FaultRuleInput[]): Promise<void>;
  /** Sets the version that answers report from now on, as after a weight update. */
  setVersion(version: string): void;
};

type Service = Desk & {
  listener: Listener;
  version: string | undefined;
  dialect: Dialect;
  pictures: boolean;
  record: boolean;
  eventMs: number;
};

/** Starts the server. Throws UsageError for a bad script, template, tokenizer or a port in use. */
export async function startScriptedPolicy(options: ScriptedPolicyOptions): Promise<ScriptedPolicy> {
  const script = typeof options.script === 'string' ? loadScript(options.script) : readScript(options.script);
  const seed = options.seed ?? 0;
  const faults = openFaultBook(seed, [...script.faults, ...readRules(options.faults ?? [])]);
  const delay = Delay.parse(options.delay ?? script.delay ?? {});
  const model = openModel({
    script,
    tokens:
      options.tokens === false
        ? null
        : {
            tokenizer: loadTokenizer(options.tokenizer),
            template: loadTemplate(options.template ?? 'plain'),
          },
    contextLimit: options.contextLimit ?? null,
    dialect: options.dialect ?? 'vllm-0.9',
    delay,
    reasoning: options.reasoning ?? 'content',
    seed,
    faults,
  });
  const stats = openStats(() => Object.fromEntries(faults.counts));
  const setRules = async (rules: readonly FaultRule[]) => {
    faults.set(rules);
    const bare = rules.find(isBareRefusal);
    await (bare ? listener.shut(bare.ms) : listener.open());
  };
  const server = createServer((request, response) => {
    void serve(service, request, response);
  });
  // Answers may take long, and only the client closes idle connections.
  Object.assign(server, { requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 });
  const listener = createListener(server, options, () => server.closeAllConnections());
  const service: Service = {
    model,
    stats,
    listener,
    setRules,
    name: script.model ?? 'scripted',
    contextLimit: options.contextLimit ?? null,
    apiKey: options.apiKey,
    version: options.version,
    dialect: options.dialect ?? 'vllm-0.9',
    pictures: options.pictures ?? true,
    record: options.record ?? false,
    eventMs: delay.event_ms,
    engine: options.engine ? openEngine(EngineOptions.parse(options.engine)) : null,
  };
  await listener.open();
  const port = listener.port();
  if (faults.rules.some(isBareRefusal)) await setRules(faults.rules);
  return {
    url: `http://${options.host ?? '127.0.0.1'}:${port}/v1`,
    port,
    stats: () => readStats(service),
    setFault: (...rules) => setRules(readRules(rules)),
    setVersion(version) {
      service.version = version;
    },
    [Symbol.asyncDispose]: () => listener.shut(),
  };
}

async function serve(service: Service, request: IncomingMessage, response: ServerResponse) {
  const path = (request.url ?? '').split('?', 1)[0];
  try {
    if (path === '/v1/chat/completions' || path === '/v1/completions')
      await complete(service, path, request, response);
    else await serveRest(service, path ?? '', request, response);
  } catch (error) {
    if (response.headersSent || response.destroyed) response.destroy();
    else if (error instanceof BadRequest) sendError(response, 400, error.message, { param: error.param });
    else if (error instanceof SyntaxError) sendError(response, 400, `the body is not JSON: ${error.message}`);
    else if (error instanceof UsageError) sendError(response, 400, error.message);
    else sendError(response, 500, `scripted policy: ${errorMessage(error)}`);
  }
}

async function complete(service: Service, path: string, request: IncomingMessage, response: ServerResponse) {
  const body = await json(request);
  if (!isAllowed(service.apiKey, request)) return sendError(response, 401, 'Unauthorized');
  const header = request.headers['x-swefarm-rollout'];
  const rollout = typeof header === 'string' ? header : undefined;
  const { tokenizer } = service.model;
  if (path === '/v1/chat/completions') {
    const asked = readChatRequest(body);
    if (asked.pictures.length > 0 && !service.pictures)
      throw new BadRequest('At most 0 image(s) may be provided in one prompt.', 'messages');
    const caller = { ...service.model.chatCaller(asked.messages, rollout), pictures: asked.pictures };
    const begin = () => service.model.chat(asked, caller);
    return await visit(service, response, caller, asked.model, begin, (answer) =>
      asked.stream ? chatEvents(answer, tokenizer, asked.withUsage) : chatBody(answer, tokenizer),
    );
  }
  if (service.dialect === 'sglang') needsNumber(body);
  const asked = readCompletionRequest(body);
  const { caller, reply } = service.model.completion(asked, rollout);
  await visit(service, response, caller, asked.model, reply, (answer) => {
    if (!tokenizer) return '';
    if (asked.stream) return completionEvents(answer, tokenizer, asked.withUsage);
    return completionBody(answer, tokenizer, answer.generation.text.raw);
  });
}

/** Handles one request from arrival to its last byte and always counts it. @param write gives the body, or the events of a stream */
async function visit(
  service: Service,
  response: ServerResponse,
  caller: Caller & { pictures?: string[] },
  model: string | null,
  begin: () => Reply,
  write: (answer: Answer) => string | Iterable<string>,
): Promise<void> {
  const seen = service.stats.enter(caller.rollout, caller.turn);
  seen.shown(caller.pictures ?? []);
  const gone = new AbortController();
  // Closed before the end was written: the client disconnected, unless one of our faults closed it.
  let ours = false;
  const closed = () => {
    if (!response.writableEnded) gone.abort();
  };
  response.once('close', closed);
  try {
    const reply = begin();
    seen.chosen(reply.conversation, reply.variant);
    if (reply.fault) seen.struck();
    if (reply.delayMs > 0) await sleepAtMost(reply.delayMs, gone.signal);
    if (gone.signal.aborted) return;
    ours = reply.fault !== null && CLOSING.has(reply.fault.kind);
    if (reply.fault?.kind === 'refuse') void service.listener.shut(reply.fault.ms ?? 1000);
    if (reply.fault?.kind === 'context_overflow') throw anyOverflow();
    if (reply.fault && (await sendFault(response, reply.fault, model ?? service.name, gone.signal))) return;
    if (service.version !== undefined) response.setHeader('x-policy-version', service.version);
    const answer = reply.answer();
    await service.engine?.run(caller.rollout, answer.promptLength, answer.completionLength, gone.signal);
    if (gone.signal.aborted) return;
    const written = write(answer);
    if (typeof written === 'string') await sendAnswer(response, written, reply.fault, gone.signal);
    else {
      let left = answer.completionLength;
      const onEvent = () => {
        seen.streamed(Math.min(CHUNK_TOKENS, left));
        left -= Math.min(CHUNK_TOKENS, left);
      };
      const { eventMs } = service;
      await sendEvents(response, written, reply.fault, gone.signal, { eventMs, onEvent });
    }
    if (gone.signal.aborted) return;
    const digest = service.record ? digestOf(answer) : undefined;
    seen.answered(answer.promptLength, answer.completionLength, digest);
  } catch (error) {
    if (error instanceof BadRequest) seen.refused();
    throw error;
  } finally {
    seen.left(gone.signal.aborted && !ours);
    response.off('close', closed);
  }
}

const CLOSING: ReadonlySet<string> = new Set(['refuse', 'reset', 'cut']);
