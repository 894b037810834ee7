/** The small routes beside completions: models, tokenizer, statistics, faults at run time. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { type Engine, engineMetrics } from './engine.ts';
import { type FaultRule, isBareRefusal, readRules } from './faults.ts';
import type { Model } from './model.ts';
import { BadRequest, objectOf, readChatRequest } from './request.ts';
import type { PolicyStats, Stats } from './stats.ts';
import { sendError, sendJson } from './transport.ts';
import { promptJson } from './wire.ts';

export type Desk = {
  model: Model;
  stats: Stats;
  /** Name of the model served. */
  name: string;
  contextLimit: number | null;
  apiKey: string | undefined;
  /** Null: answers take only the delay of the script. */
  engine: Engine | null;
  setRules: (rules: readonly FaultRule[]) => Promise<void>;
};

/** True when the request has the key, or no key is required. */
export const isAllowed = (apiKey: string | undefined, request: IncomingMessage): boolean =>
  apiKey === undefined || request.headers.authorization === `Bearer ${apiKey}`;

export const readStats = ({ stats, engine }: Pick<Desk, 'stats' | 'engine'>): PolicyStats => ({
  ...stats.read(),
  ...(engine ? { engine: engine.stats() } : {}),
});

/** Handles everything except completions. Throws BadRequest and UsageError for bad bodies. */
export async function serveRest(
  desk: Desk,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { model, stats, name, contextLimit } = desk;
  switch (`${request.method} ${path}`) {
    case 'GET /health':
      return sendJson(response, 200, '{}');
    case 'GET /v1/models':
      if (!isAllowed(desk.apiKey, request)) return sendError(response, 401, 'Unauthorized');
      return sendJson(
        response,
        200,
        JSON.stringify({
          object: 'list',
          data: [{ id: name, object: 'model', owned_by: 'swefarm', max_model_len: contextLimit }],
        }),
      );
    case 'GET /stats':
      return sendJson(response, 200, JSON.stringify(readStats(desk)));
    case 'GET /metrics': {
      const text = desk.engine
        ? engineMetrics(name, desk.engine.stats())
        : `# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name="${name}"} ${stats.inFlight()}.0\n`;
      return sendJson(response, 200, text, { 'content-type': 'text/plain; version=0.0.4' });
    }
    case 'POST /faults': {
      const rules = readRules(await json(request));
      if (rules.some((rule) => isBareRefusal(rule) && rule.ms === undefined)) {
        throw new BadRequest('a bare "refuse" needs "ms" here: nobody could take it back', 'ms');
      }
      // A refusal also closes this connection, so it waits until the answer is sent.
      if (rules.some(isBareRefusal))
        response.once('finish', () => void desk.setRules(rules).catch(console.error));
      else await desk.setRules(rules);
      return sendJson(response, 200, JSON.stringify(rules));
    }
    case 'POST /tokenize':
    case 'POST /detokenize':
      return sendJson(response, 200, tokenised(model, path, objectOf(await json(request)), contextLimit));
    default:
      return sendError(response, 404, `there is no ${request.method} ${path}`);
  }
}

function tokenised(
  { tokenizer, prompter }: Model,
  path: string,
  body: Record<string, unknown>,
  limit: number | null,
) {
  if (!tokenizer || !prompter) throw new BadRequest('this server runs without tokens');
  if (path === '/detokenize') {
    const { tokens } = body;
    if (!Array.isArray(tokens)) throw new BadRequest('tokens: a list of ids is required', 'tokens');
    return JSON.stringify({ prompt: tokenizer.decode(tokens) });
  }
  const ids = Array.isArray(body.messages)
    ? chatIds(prompter, body)
    : tokenizer.encode(typeof body.prompt === 'string' ? body.prompt : '').json;
  const count = ids === '' ? 0 : ids.split(',').length;
  return `{"count":${count},"max_model_len":${limit},"tokens":[${ids}],"token_strs":null}`;
}

function chatIds(prompter: NonNullable<Model['prompter']>, body: Record<string, unknown>): string {
  const { messages, tools } = readChatRequest(body);
  return promptJson(prompter.fromMessages(messages, tools));
}
