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

const SILENCE = { head: 2_000, alive: 15_000 };
const MOST_NAMES = 10;
const NAME_LENGTH = 100;
/** Bytes of JSON for one token, where the length of a prompt is only estimated. */
const BYTES_PER_TOKEN = 3.5;

export class Requests {
  readonly #options: RecorderOptions;
  readonly #recording: Recording;
  readonly #readBody = createBodyReader();
  readonly #signOf: ReturnType<typeof createSigns>;
  readonly #unknownPaths = new Map<string, number>();
  readonly #dropped = new Map<string, number>();
  #requests = 0;
  #refused = 0;

  constructor(options: RecorderOptions, recording: Recording) {
    this.#options = options;
    this.#recording = recording;
    this.#signOf = createSigns(options.card);
  }

  /** Never throws. A request whose connection breaks gets no answer. */
  handle(request: IncomingMessage, response: ServerResponse): void {
    response.on('error', () => undefined);
    this.#serve(request, response).catch(() => response.destroy());
  }

  counts() {
    return {
      ...{ requests: this.#requests, refused: this.#refused },
      ...(this.#unknownPaths.size > 0 ? { unknown_paths: Object.fromEntries(this.#unknownPaths) } : {}),
      ...(this.#dropped.size > 0 ? { dropped: Object.fromEntries(this.#dropped) } : {}),
    };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request.url ?? '/');
    const dialect = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined;
    const form = DIALECTS[dialect ?? (path === COUNT_ROUTE ? 'messages' : 'chat')];
    const isModel = request.method === 'GET' && /^\/models(\/|$)/.test(path);
    const isPost = request.method === 'POST' && (dialect !== undefined || path === COUNT_ROUTE);
    const refusal = this.#refusalOf(request, isModel || isPost);
    if (refusal) {
      this.#refused++;
      if (refusal.status === 404) count(this.#unknownPaths, `${request.method} ${path}`);
      await sendJson(response, refusal.status, form.refusal(refusal.why, refusal.message), CLOSE);
    } else if (isModel) {
      const id = path.slice('/models/'.length);
      await sendJson(response, 200, id === '' ? modelList(this.#modelName()) : modelEntry(id));
    } else {
      await this.#servePost(request, response, { dialect, form });
    }
  }

  /** Returns why a request is refused before its body is read; null: it is not. */
  #refusalOf(request: IncomingMessage, isKnown: boolean): EarlyRefusal | null {
    const { upgrade, 'content-encoding': encoding = 'identity' } = request.headers;
    if (upgrade !== undefined) return { status: 426, why: 'unknown', message: 'no websockets' };
    if (!isKnown) return { status: 404, why: 'unknown', message: 'no such path' };
    if (!hasKey(request, this.#options.key))
      return { status: 401, why: 'bad_request', message: 'another key' };
    if (encoding === 'identity') return null;
    return { status: 415, why: 'bad_request', message: 'send the body without content-encoding' };
  }

  async #servePost(
    request: IncomingMessage,
    response: ServerResponse,
    { dialect, form }: { dialect: Dialect | undefined; form: DialectForm },
  ): Promise<void> {
    try {
      if (dialect) await this.#answer(request, response, dialect);
      else await this.#countTokens(request, response);
    } catch (error) {
      if (!(error instanceof BadRequest)) throw error;
      this.#refused++;
      response.setHeader('connection', 'close');
      await sendRefusal(response, form, { refused: 'bad_request', message: error.message });
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, dialect: Dialect): Promise<void> {
    const form = DIALECTS[dialect];
    this.#requests++;
    const asked = form.read(await this.#readBody(request));
    for (const name of asked.dropped) count(this.#dropped, name);
    const { id, outcome, delivered } = this.#recording.ask(asked, this.#signOf(request.headers, dialect));
    const counted = outcome.then((end) => {
      if ('refused' in end) this.#refused++;
      return end;
    });
    const silence = this.#options.silenceMs ?? SILENCE;
    if (await deliver(response, { form, request: asked, id, silence }, counted)) delivered();
  }

  async #countTokens(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = DIALECTS.messages.read(await this.#readBody(request));
    const known = this.#recording.isEnded ? null : await rendered(this.#options, asked);
    await sendJson(response, 200, { input_tokens: known ?? estimate(asked) });
  }

  #modelName(): string {
    return this.#options.trajectory.model ?? this.#options.card.name;
  }
}

/** Counts a name that the agent chose: of many names, the last are counted together. */
function count(counts: Map<string, number>, name: string): void {
  const short = name.slice(0, NAME_LENGTH);
  const key = counts.has(short) || counts.size < MOST_NAMES - 1 ? short : '(others)';
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

type EarlyRefusal = { status: number; why: Refused; message: string };

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
