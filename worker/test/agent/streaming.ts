/** Test tool: rollouts and single turns with streamed answers, and servers that stream the events of a test. */

import { cumulative } from '@swefarm/policy';
import { AgentConfig, PolicyConfig } from '@swefarm/shared';
import { type ScriptedPolicyOptions, startScriptedPolicy } from '@swefarm/testkit';
import { expect, onTestFinished } from 'vitest';
import type { AgentEnd } from '../../src/agent/agent.ts';
import { runMiniAgent } from '../../src/agent/loop.ts';
import { Endpoints } from '../../src/agent/policy/endpoints.ts';
import { type Handler, sendJson, startEndpoint } from './endpoint.ts';
import { depsOf, echoShell, never, policyAt, START, scriptedTask } from './scripted.ts';

export const POLL = { timeout: 55_000, interval: 10 };

const ANSWER = [
  { think: 'What ïs there? '.repeat(20), command: 'echo one' },
  { think: 'Mürbe 😀 '.repeat(30), command: 'echo  "ünïcode  \\u00e9 😀"' },
  { submit: true as const },
];
const script = { conversations: [{ variants: [ANSWER] }] };

export async function server(options: Partial<ScriptedPolicyOptions> = {}) {
  const started = await startScriptedPolicy({ script, ...options });
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started;
}

type Opening = { urls: string[]; config?: object; loads?: Map<string, number>; agent?: object };

export function begin({ urls, config = {}, loads = new Map(), agent = {} }: Opening): Promise<AgentEnd> {
  const endpoints = new Endpoints();
  endpoints.setOthers(loads);
  const parsed = PolicyConfig.parse({
    ...{ urls, model: 'm', token_mode: 'token-in', require_tokens: true, patience: 20 },
    ...config,
  });
  const policy = policyAt(parsed, { endpoints });
  onTestFinished(() => policy[Symbol.dispose]());
  return runMiniAgent(scriptedTask(AgentConfig.parse(agent)), depsOf(policy, echoShell()));
}

/** All token fields that a trainer receives. */
export const tokensOf = ({ trajectory }: AgentEnd) => [
  ...cumulative(trajectory.turns.map(({ tokens }) => tokens)),
];
export const sums = ({ trajectory }: AgentEnd): number[] =>
  trajectory.turns.map(({ spans }) => (spans ?? []).reduce((sum, { tokens }) => sum + tokens, 0));

/** The answer without faults: the script has the same tokens at every endpoint. */
export const undisturbed = async () => await begin({ urls: [(await server()).url] });

export function expectSame(end: AgentEnd, plain: AgentEnd): void {
  expect(end.exit_status).toBe('submitted');
  expect(end.trajectory.contiguous).toBe(true);
  expect(tokensOf(end)).toEqual(tokensOf(plain));
  expect(end.trajectory.messages).toEqual(plain.trajectory.messages);
  expect(sums(end)).toEqual(tokensOf(end).map(({ generation }) => generation.length));
}

/** The events of a streamed text completion, one token each. */
export const events = (ids: number[], finish: string | null, prompt?: number[]): string[] =>
  ids.map(
    (id, at) =>
      `data: ${JSON.stringify({
        choices: [
          {
            index: 0,
            text: `t${id} `,
            token_ids: [id],
            logprobs: { token_logprobs: [-id / 8] },
            finish_reason: at === ids.length - 1 ? finish : null,
            ...(at === 0 && prompt ? { prompt_token_ids: prompt } : {}),
          },
        ],
      })}\n\n`,
  );
export const streamed =
  (list: string[], then: 'end' | 'cut' | 'nothing' = 'end'): Handler =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const each of list) response.write(each);
    if (then === 'end') response.end('data: [DONE]\n\n');
    if (then === 'cut') setTimeout(() => response.destroy(), 50);
  };
/** The events of a streamed chat answer without token ids, one word each. */
export const chatEvents = (words: string[], finish: string | null): string[] =>
  words.map(
    (content, at) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: at === words.length - 1 ? finish : null }] })}\n\n`,
  );
/** Sends the events with a pause of `gapMs` after each, and then cuts the connection. */
export const slowly =
  (list: string[], gapMs: number): Handler =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const next = (): void => {
      const one = list.shift();
      if (one === undefined) return void response.destroy();
      response.write(one);
      setTimeout(next, gapMs);
    };
    next();
  };
/** An endpoint that tokenizes every prompt alike. The handlers answer completions in order; the last one answers all further requests. */
export async function tokenEndpoint(...handlers: Handler[]) {
  let asked = 0;
  const endpoint = await startEndpoint((request, response, index) => {
    if (request.path.endsWith('/detokenize')) sendJson({ prompt: 'x' })(request, response, index);
    else if (request.path.endsWith('/tokenize')) sendJson({ tokens: [1, 2, 3] })(request, response, index);
    else if (request.path.endsWith('/models')) sendJson({ data: [] })(request, response, index);
    else handlers[Math.min(asked++, handlers.length - 1)]?.(request, response, index);
  });
  onTestFinished(() => endpoint[Symbol.asyncDispose]());
  const bodies = () =>
    endpoint.requests
      .filter(({ path }) => path.endsWith('/completions'))
      .map(({ body }) => body as Record<string, unknown>);
  return { url: endpoint.url, bodies };
}

/** One turn against answers that the test writes. */
export async function oneTurn(config: object, ...handlers: Handler[]) {
  const { url, bodies } = await tokenEndpoint(...handlers);
  const parsed = {
    ...{ urls: [url], model: 'm', token_mode: 'token-in', version: 'v', patience: 3 },
    ...config,
  };
  const policy = policyAt(PolicyConfig.parse(parsed));
  onTestFinished(() => policy[Symbol.dispose]());
  const asked = policy.complete(START, [], never);
  return { asked, bodies };
}
