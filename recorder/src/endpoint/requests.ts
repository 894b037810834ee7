/** Routes the HTTP requests of an agent. Everything that the endpoint does not serve is refused and counted. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dialect } from '@swefarm/shared';
import { type AgentRequest, BadRequest, type DialectForm, type Refused } from '../dialects/dialect.ts';
import { modelEntry, modelList } from '../dialects/models.ts';
import { DIALECTS } from '../dialects/registry.ts';
import type { RecorderOptions } from '../recorder.ts';
import { createBodyReader } from './body.ts';
import { deliver, sendJson, sendRefusal } from './delivery.ts';
import type { Recording } from './recording.ts';
import { createSigns } from './sign.ts';

const ROUTES: Readonly<Record<string, Dialect>> = {
  '/chat/completions': 'chat',
  '/responses': 'responses',
  '/messages': 'messages',
};
const COUNT_ROUTE = '/messages/count_tokens';
const MODELS_ROUTE = '/models';

const SILENCE = { head: 2_000, alive: 15_000 };
const MOST_PATHS = 10;
const PATH_LENGTH = 100;
/** Bytes of JSON for one token, where the length of a prompt is only estimated. */
const BYTES_PER_TOKEN = 3.5;

export function createRequests(options: RecorderOptions, recording: Recording) {
  const counts = { requests: 0, refused: 0 };
  const unknownPaths = new Map<string, number>();
  const readBody = createBodyReader();
  const signOf = createSigns(options.card);
  const model = options.trajectory.model ?? options.card.name;

  const refuse = (response: ServerResponse, form: DialectForm, refused: Refused, message: string) => {
    counts.refused++;
    return sendRefusal(response, form, { refused, message });
  };

  const countPath = (path: string): void => {
    const known = unknownPaths.has(path) || unknownPaths.size < MOST_PATHS - 1;
    const key = known ? path : '(others)';
    unknownPaths.set(key, (unknownPaths.get(key) ?? 0) + 1);
  };

  const answer = async (request: IncomingMessage, response: ServerResponse, dialect: Dialect) => {
    const form = DIALECTS[dialect];
    counts.requests++;
    if (recording.isEnded) return await refuse(response, form, 'over', 'the rollout is over');
    const asked = form.read(await readBody(request));
    const asking = recording.ask(asked, signOf(request.headers, dialect));
    const outcome = asking.outcome.then((end) => {
      if ('refused' in end) counts.refused++;
      return end;
    });
    const silence = options.silenceMs ?? SILENCE;
    if (await deliver(response, { form, request: asked, id: asking.id, silence }, outcome))
      asking.delivered();
  };

  const countTokens = async (request: IncomingMessage, response: ServerResponse) => {
    const asked = DIALECTS.messages.read(await readBody(request));
    const known = recording.isEnded ? null : await rendered(options, asked);
    await sendJson(response, 200, { input_tokens: known ?? estimate(asked) });
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const path = pathOf(request.url ?? '/');
    const dialect = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined;
    const form = DIALECTS[dialect ?? (path === COUNT_ROUTE ? 'messages' : 'chat')];
    if (request.headers.upgrade !== undefined)
      return await sendJson(response, 426, form.refusal('unknown', 'no websockets'), { connection: 'close' });
    try {
      const isPost = request.method === 'POST' && (dialect !== undefined || path === COUNT_ROUTE);
      const isModel =
        request.method === 'GET' && (path === MODELS_ROUTE || path.startsWith(`${MODELS_ROUTE}/`));
      if (!isPost && !isModel) {
        countPath(`${request.method} ${path}`.slice(0, PATH_LENGTH));
        return await refuse(response, form, 'unknown', 'no such path');
      }
      if (!hasKey(request, options.key)) {
        counts.refused++;
        return await sendJson(response, 401, form.refusal('bad_request', 'another key'), CLOSE);
      }
      if (isModel) {
        const id = path.slice(MODELS_ROUTE.length + 1);
        return await sendJson(response, 200, id === '' ? modelList(model) : modelEntry(id));
      }
      if (!['identity', undefined].includes(request.headers['content-encoding'])) {
        counts.refused++;
        return await sendJson(response, 415, form.refusal('bad_request', 'content-encoding'), CLOSE);
      }
      return dialect ? await answer(request, response, dialect) : await countTokens(request, response);
    } catch (error) {
      if (!(error instanceof BadRequest)) throw error;
      response.setHeader('connection', 'close');
      return await refuse(response, form, 'bad_request', error.message);
    }
  };

  return {
    /** Never throws. A request whose connection breaks gets no answer. */
    handle(request: IncomingMessage, response: ServerResponse): void {
      response.on('error', () => undefined);
      serve(request, response).catch(() => response.destroy());
    },
    counts: () => ({ ...counts, unknownPaths: Object.fromEntries(unknownPaths) }),
  };
}

const CLOSE = { connection: 'close' };

/** Returns the path without the query and without `/v1`. */
function pathOf(url: string): string {
  const [path = '/'] = url.split('?', 1);
  return path.startsWith('/v1/') ? path.slice('/v1'.length) : path;
}

function hasKey({ headers }: IncomingMessage, key: string): boolean {
  const { authorization = '', 'x-api-key': api, 'x-goog-api-key': google } = headers;
  return [authorization.replace(/^bearer /i, ''), api, google].includes(key);
}

async function rendered(
  { countTokens, signal }: RecorderOptions,
  asked: AgentRequest,
): Promise<number | null> {
  return (await countTokens?.(asked.messages, asked.tools, signal).catch(() => null)) ?? null;
}

const estimate = ({ messages, tools }: AgentRequest): number =>
  Math.ceil((JSON.stringify(messages).length + JSON.stringify(tools).length) / BYTES_PER_TOKEN);
