/** Sends requests to registries over HTTPS. Plain HTTP is for this machine, and for registries that a setting names. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { rootCertificates } from 'node:tls';
import { errorMessage, UsageError } from '@swefarm/shared';
import type { Dispatcher } from 'undici';
import { codeOf } from './errors.ts';

// compile/pieces.mjs removes this line, so that the bundler sees the packages.
const require = createRequire(import.meta.url);

const CONNECT_TIMEOUT_MS = 30_000;
/** Time without an answer, or without a byte of a body, after which a request has failed. */
const SILENCE_MS = 60_000;
const MOST_REDIRECTS = 5;

export type ConnectionSettings = {
  /** File in PEM of an authority that signs certificates of registries, beside the public ones; null: none. */
  ca: string | null;
  /** Registries (`host` or `host:port`) without TLS. */
  plainHttp: readonly string[];
};

export type Answer = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'> & {
  /** Origin of the server that answered, after redirects. */
  origin: string;
};
export type Send = { method?: 'GET' | 'POST'; headers: Record<string, string>; body?: string };

export type Connections = ReturnType<typeof openConnections>;

/**
 * Opens a pool of connections, which honours `HTTPS_PROXY` and `NO_PROXY`, except for the loopback. Throws UsageError if the file of the authority cannot be
 * read. undici is loaded here, because many workers pull nothing.
 */
export function openConnections({ ca, plainHttp }: ConnectionSettings) {
  const { request } = require('undici') as typeof import('undici');
  const dispatchers = openDispatchers(ca);
  const origins = new Map<string, Promise<string>>();

  const reach = async (url: string, signal: AbortSignal): Promise<void> => {
    const { body } = await request(url, { dispatcher: dispatchers.of(new URL(url)), signal });
    await body.dump();
  };

  return {
    /** Returns scheme and address of a registry. */
    origin(registry: string, signal: AbortSignal): Promise<string> {
      const known = origins.get(registry);
      if (known) return known;
      const found = plainHttp.includes(registry)
        ? Promise.resolve(`http://${registry}`)
        : findOrigin(registry, (url) => reach(url, signal));
      origins.set(registry, found);
      found.catch(() => origins.delete(registry));
      return found;
    },
    /** Sends a request and follows redirects. Another server receives neither the header `authorization` nor a body. */
    async send(url: string, { method = 'GET', headers, body }: Send, signal: AbortSignal): Promise<Answer> {
      let at = new URL(url);
      let sent = headers;
      for (let redirects = 0; ; redirects++) {
        const options = {
          dispatcher: dispatchers.of(at),
          method,
          headers: sent,
          signal,
          ...(body === undefined ? {} : { body }),
        };
        const answer = await request(at, options);
        const next = targetOf(answer, at);
        if (next === null)
          return {
            statusCode: answer.statusCode,
            headers: answer.headers,
            body: answer.body,
            origin: at.origin,
          };
        await answer.body.dump();
        if (redirects === MOST_REDIRECTS)
          throw new Error(`${url} redirects more than ${MOST_REDIRECTS} times`);
        if (next.origin !== at.origin && body !== undefined)
          throw new Error(`${at.origin} redirects a request with credentials to ${next.origin}`);
        if (next.origin !== at.origin)
          sent = Object.fromEntries(Object.entries(sent).filter(([name]) => name !== 'authorization'));
        at = next;
      }
    },
    [Symbol.asyncDispose]: () => dispatchers[Symbol.asyncDispose](),
  };
}

function openDispatchers(ca: string | null) {
  const { Agent, EnvHttpProxyAgent } = require('undici') as typeof import('undici');
  const tls = ca === null ? {} : { ca: [...rootCertificates, readAuthority(ca)] };
  const options = {
    headersTimeout: SILENCE_MS,
    bodyTimeout: SILENCE_MS,
    connect: { ...tls, timeout: CONNECT_TIMEOUT_MS },
  };
  const proxied = new EnvHttpProxyAgent({ ...options, requestTls: tls });
  const direct = new Agent(options);
  return {
    // A proxy has another loopback.
    of: ({ host }: URL): Dispatcher => (isLoopback(host) ? direct : proxied),
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all([proxied.destroy(), direct.destroy()]);
    },
  };
}

/** @param reach sends a request, and throws if there is no connection */
async function findOrigin(registry: string, reach: (url: string) => Promise<void>): Promise<string> {
  const secure = `https://${registry}`;
  if (!isLoopback(registry)) return secure;
  try {
    await reach(`${secure}/v2/`);
  } catch (error) {
    // A registry of this machine that does not speak TLS.
    if (/^(EPROTO|ERR_SSL_.*|UND_ERR_SOCKET|ECONNRESET)$/.test(codeOf(error))) return `http://${registry}`;
    throw error;
  }
  return secure;
}

/** Returns the target of a redirect; null for other answers. Throws for a redirect that leaves TLS. */
function targetOf(
  { statusCode, headers: { location } }: Pick<Answer, 'statusCode' | 'headers'>,
  from: URL,
): URL | null {
  if (![301, 302, 303, 307, 308].includes(statusCode) || typeof location !== 'string') return null;
  const next = new URL(location, from);
  if (from.protocol === 'https:' && next.protocol !== 'https:')
    throw new Error(`${from.origin} redirects to ${next.origin}, which has no TLS`);
  return next;
}

function readAuthority(path: string): string {
  try {
    const text = readFileSync(path, 'utf8');
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
    throw new Error('it has no certificate in PEM');
  } catch (error) {
    throw new UsageError(`registry_ca: ${path} cannot be used: ${errorMessage(error)}`);
  }
}

function isLoopback(registry: string): boolean {
  const host = registry.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
