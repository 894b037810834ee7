/**
 * A server that answers agents by a script and records their requests, for the fixtures of this package.
 *
 *     node recorder/test/requests/record.ts --out RAW.jsonl --port-file FILE [--script STEPS.json] [--any] [--count] [--refuse N:WHY] [--slow N:SECONDS]
 *
 * A step is chosen by the number of answers in the request: `{think, text, run: [COMMAND], calls: [{name, args}], bad, length}`. `bad`: the
 * arguments are cut. `--count`: a step is chosen by the number of requests instead, so that a condensed history does not begin again. A request for a summary, and one without tools after one with tools, get a text. `--any`: the latter get a step too.
 * `--refuse 2:over`: the second request is refused; `--slow 2:30`: its answer comes after 30 seconds with signs of life.
 */
import { randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Dialect, ToolDefinition } from '@swefarm/shared';
import {
  type AgentAnswer,
  type AgentRequest,
  BadRequest,
  REFUSAL_STATUS,
  type Refused,
} from '../../src/dialects/dialect.ts';
import { modelEntry, modelList } from '../../src/dialects/models.ts';
import { DIALECTS } from '../../src/dialects/registry.ts';

type Step = {
  think?: string;
  text?: string;
  run?: string[];
  calls?: { name: string; args: Record<string, unknown> }[];
  bad?: boolean;
  length?: boolean;
};

const DEFAULT: Step[] = [
  { think: 'Look first.', text: 'I will look at the repository.', run: ['ls -la && cat calc.py'] },
  { text: 'The sign is wrong; I fix it.', run: ["sed -i 's/a - b/a + b/' calc.py && git diff"] },
  { text: 'Fixed the sign in calc.add.' },
];

const { values: options } = parseArgs({
  options: {
    out: { type: 'string' },
    'port-file': { type: 'string' },
    script: { type: 'string' },
    any: { type: 'boolean', default: false },
    count: { type: 'boolean', default: false },
    refuse: { type: 'string', multiple: true, default: [] },
    slow: { type: 'string', multiple: true, default: [] },
  },
});
const script: Step[] = options.script ? JSON.parse(readFileSync(options.script, 'utf8')) : DEFAULT;
const byNumber = (given: string[]) => new Map(given.map((text) => text.split(':') as [string, string]));
const refusals = byNumber(options.refuse) as Map<string, Refused>;
const pauses = byNumber(options.slow);

/** Names of tools that run a command, and their argument. */
const SHELL = /^(bash|terminal|exec_command|shell_command|run_shell_command)$/i;
const ARGUMENTS = ['command', 'cmd'];
const ENDS = /^(finish|submit)$/;
const SUMMARY =
  /detailed summary|context checkpoint|state_snapshot|handoff summary|summary of (the|our) conversation|summarize (the|your)|context-aware state summarizer|anchored summary|compress/i;
const HEADERS =
  /^(user-agent|x-claude-code-.*|x-codex-turn-metadata|x-session-id|x-parent-session-id|x-openai-subagent)$/;

/** Fills the required arguments that a step does not give. */
function filled({ function: { parameters } }: ToolDefinition, given: Record<string, unknown>) {
  const properties = (parameters.properties ?? {}) as Record<string, { type?: string; enum?: unknown[] }>;
  const values: Record<string, unknown> = { boolean: false, integer: 1, number: 1, array: [], object: {} };
  const required = ((parameters.required ?? []) as string[]).filter((name) => !(name in given));
  return {
    ...given,
    ...Object.fromEntries(
      required.map((name) => {
        const { type, enum: choices } = properties[name] ?? {};
        return [name, choices?.[0] ?? values[String(type)] ?? 'scripted'];
      }),
    ),
  };
}

function callsOf(step: Step, tools: ToolDefinition[]): { name: string; args: string }[] {
  const shell = tools.find(({ function: { name } }) => SHELL.test(name));
  const end = tools.find(({ function: { name } }) => ENDS.test(name));
  const calls = (step.calls ?? []).map(({ name, args }) => ({ name, args: JSON.stringify(args) }));
  if (shell) {
    const properties = Object.keys((shell.function.parameters.properties ?? {}) as object);
    const argument = ARGUMENTS.find((name) => properties.includes(name)) ?? 'command';
    for (const command of step.run ?? [])
      calls.push({ name: shell.function.name, args: JSON.stringify(filled(shell, { [argument]: command })) });
  }
  if (calls.length === 0 && !step.run && end)
    calls.push({ name: end.function.name, args: JSON.stringify(filled(end, { message: step.text ?? '' })) });
  return calls.map(({ name, args }) => ({ name, args: step.bad ? args.slice(0, -3) : args }));
}

let toolsSeen = false;
let steps = 0;

function answerTo(request: AgentRequest): AgentAnswer {
  const id = randomBytes(8).toString('hex');
  const last = request.messages.at(-1);
  const turns = request.messages.filter(({ role }) => role === 'assistant').length;
  toolsSeen ||= request.tools.length > 0;
  const summary = last?.role === 'user' && SUMMARY.test((last.content ?? '').slice(0, 20_000));
  const side = toolsSeen && request.tools.length === 0 && !options.any;
  const at = options.count && !summary && !side ? steps++ : turns;
  const step: Step = summary
    ? { text: '<summary>\nThe sign in calc.add is wrong. Next: fix it.\n</summary>' }
    : side
      ? { text: 'A short answer.' }
      : (script[Math.min(at, script.length - 1)] ?? {});
  const calls = summary || side ? [] : callsOf(step, request.tools);
  const prompt = JSON.stringify(request.messages).length;
  return {
    id,
    message: {
      role: 'assistant',
      content: step.text ?? null,
      ...(step.think ? { reasoning_content: step.think } : {}),
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map(({ name, args }, place) => ({
              id: `call_${id}_${place}`,
              type: 'function' as const,
              function: { name, arguments: args },
            })),
          }),
    },
    finish: step.length ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
    usage: { prompt_tokens: Math.ceil(prompt / 4), completion_tokens: 20 },
  };
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

const record = (value: object): void =>
  appendFileSync(options.out ?? 'requests.jsonl', `${JSON.stringify(value)}\n`);

const ENDINGS: [string, Dialect][] = [
  ['/chat/completions', 'chat'],
  ['/responses', 'responses'],
  ['/messages', 'messages'],
];

let count = 0;

async function serveModel(
  dialect: Dialect,
  entry: object,
  body: unknown,
  response: ServerResponse,
): Promise<void> {
  const form = DIALECTS[dialect];
  const number = String(++count);
  let request: AgentRequest;
  try {
    request = form.read(body);
  } catch (error) {
    if (!(error instanceof BadRequest)) throw error;
    record({ ...entry, unreadable: error.message });
    return sendJson(response, 400, form.refusal('bad_request', error.message));
  }
  const answer = answerTo(request);
  const refused = refusals.get(number);
  record({ ...entry, ...(refused ? { refused } : { answer }) });
  const pause = Number(pauses.get(number) ?? 0);
  if (!request.stream) {
    await wait(pause * 1000);
    if (refused)
      return sendJson(response, REFUSAL_STATUS[refused], form.refusal(refused, 'scripted refusal'));
    return sendJson(response, 200, form.whole(request, answer));
  }
  if (refused && pause === 0)
    return sendJson(response, REFUSAL_STATUS[refused], form.refusal(refused, 'scripted refusal'));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(form.begin(request, answer.id));
  for (let waited = 0; waited < pause; waited += 15) {
    await wait(15_000);
    response.write(form.alive(request, answer.id));
  }
  response.end(
    refused
      ? form.refusedStream(request, answer.id, refused, 'scripted refusal')
      : form.events(request, answer),
  );
}

async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const text = await textOf(incoming);
  const path = (incoming.url ?? '').split('?')[0] ?? '';
  const dialect = ENDINGS.find(([ending]) => path.endsWith(ending))?.[1];
  const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => HEADERS.test(name)));
  const entry = { path: incoming.url, headers, body: text ? JSON.parse(text) : null };
  if (dialect && incoming.method === 'POST') return serveModel(dialect, entry, entry.body, response);
  record({ ...entry, method: incoming.method });
  if (path.endsWith('/count_tokens'))
    return sendJson(response, 200, { input_tokens: Math.ceil(text.length / 4) });
  if (path.endsWith('/models')) return sendJson(response, 200, modelList('scripted'));
  if (path.includes('/models/'))
    return sendJson(response, 200, modelEntry(path.slice(path.lastIndexOf('/') + 1)));
  return sendJson(response, 404, DIALECTS.chat.refusal('unknown', path));
}

const server = createServer((incoming, response) => {
  serve(incoming, response).catch((error: unknown) => {
    console.error(error);
    response.destroy();
  });
});
server.requestTimeout = 0;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' ? String(address?.port) : '';
  if (options['port-file']) writeFileSync(options['port-file'], port);
  console.log(`http://127.0.0.1:${port}`);
});
