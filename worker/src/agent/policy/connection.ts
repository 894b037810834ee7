/**
 * One connection pool to policy endpoints for the whole process, and one client per rollout on top of it.
 * The pool has no time limits of its own: a long turn, or a full queue at the server, is silent for many minutes.
 */
import { authorizationAt, type PolicyKey } from '@swefarm/shared';
import OpenAI from 'openai';
import { Agent, fetch, Headers } from 'undici';

/** More than rollouts of one node: a lower number queues requests here, where nobody sees them. */
const CONNECTIONS = 4096;
const CONNECT_TIMEOUT_MS = 10_000;
/** Node's longest timer: the SDK's own clock is off, ours also covers the body. */
const NEVER_MS = 2 ** 31 - 1;

let pool: Agent | null = null;

function openPool(): Agent {
  pool ??= new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
  });
  return pool;
}

/** Closes idle and busy connections; the next request opens a new pool. */
export async function closePolicyConnections(): Promise<void> {
  const closing = pool;
  pool = null;
  await closing?.destroy();
}

/**
 * A client that never resends by itself, logs nothing and reads nothing from the environment. The key is looked up for the
 * address of each request as it is sent; a redirection is followed nowhere.
 */
export function openClient(url: string, apiKey: PolicyKey | null, headers: Record<string, string>): OpenAI {
  return new OpenAI({
    baseURL: url,
    apiKey: 'none',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    maxRetries: 0,
    timeout: NEVER_MS,
    logLevel: 'off',
    defaultHeaders: { ...headers, Authorization: null },
    // The same undici must make both: another version's fetch refuses this dispatcher.
    fetch: ((input: string, init?: Record<string, unknown>) => {
      const sent = new Headers(init?.headers as Headers);
      for (const [name, value] of Object.entries(authorizationAt(apiKey, input))) sent.set(name, value);
      return fetch(input, { ...init, headers: sent, redirect: 'manual', dispatcher: openPool() });
    }) as unknown as typeof globalThis.fetch,
  });
}
