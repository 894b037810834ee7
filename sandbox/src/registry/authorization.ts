/** Answers the challenges of registries: basic authentication, and tokens (the Docker token specification, also with OAuth 2). */
import { z } from 'zod';
import type { Credentials } from '../images/credentials.ts';
import type { Connections } from './connection.ts';
import { readDocument, readErrorText } from './document.ts';
import { answerError } from './errors.ts';

type Challenge = { scheme: string; parameters: Record<string, string> };

const Token = z.object({ token: z.string().optional(), access_token: z.string().optional() });
const CLIENT = 'swefarm';
const MOST_TOKEN_BYTES = 1024 ** 2;

/** Parses a header `WWW-Authenticate` with one challenge or several, separated by commas. */
export function parseChallenges(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  const pattern =
    /(?:^|[\s,])([A-Za-z]+)(?=\s+[A-Za-z]+=|\s*$)|([A-Za-z_]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g;
  for (const [, scheme, name, quoted, plain] of header.matchAll(pattern)) {
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: {} });
    else if (name !== undefined) {
      const last = challenges.at(-1);
      if (last) last.parameters[name.toLowerCase()] = quoted?.replaceAll(/\\(.)/g, '$1') ?? plain ?? '';
    }
  }
  return challenges;
}

/**
 * Returns the header `authorization` that answers the challenge of an answer 401; null if there is no answer to it, for example because
 * there are no credentials. Throws RegistryError if the server of tokens refuses.
 */
export async function authorize(
  connections: Connections,
  header: string,
  {
    origin,
    repository,
    credentials,
  }: { origin: string; repository: string; credentials: Credentials | null },
  signal: AbortSignal,
): Promise<string | null> {
  const challenges = parseChallenges(header);
  const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
  if (bearer?.parameters.realm !== undefined) {
    const scope = bearer.parameters.scope ?? `repository:${repository}:pull`;
    const { realm, service } = bearer.parameters;
    if (origin.startsWith('https:') && !realm.startsWith('https:'))
      throw new Error(`${origin} names a server of tokens without TLS: ${realm}`);
    const wanted = { realm, service, scope };
    return `Bearer ${await requestToken(connections, wanted, credentials, signal)}`;
  }
  const isBasic = challenges.some(({ scheme }) => scheme === 'basic');
  return isBasic && credentials && 'username' in credentials ? basic(credentials) : null;
}

const basic = ({ username, password }: { username: string; password: string }): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

async function requestToken(
  connections: Connections,
  { realm, service, scope }: { realm: string; service: string | undefined; scope: string },
  credentials: Credentials | null,
  signal: AbortSignal,
): Promise<string> {
  const named = { ...(service === undefined ? {} : { service }), scope };
  const url = new URL(realm);
  let sent: Parameters<Connections['send']>[1];
  if (credentials && 'identitytoken' in credentials) {
    // An identity token of `docker login` is a refresh token of OAuth 2, which only POST accepts.
    const form = { grant_type: 'refresh_token', client_id: CLIENT, refresh_token: credentials.identitytoken };
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    sent = { method: 'POST', headers, body: new URLSearchParams({ ...form, ...named }).toString() };
  } else {
    for (const [name, value] of Object.entries(named)) url.searchParams.set(name, value);
    sent = { headers: credentials ? { authorization: basic(credentials) } : {} };
  }
  const { statusCode, headers, body } = await connections.send(url.href, sent, signal);
  const what = `token for ${scope} at ${url.host}`;
  if (statusCode !== 200)
    throw answerError(what, statusCode, oneOf(headers['retry-after']), await readErrorText(body));
  const text = await readDocument(body, MOST_TOKEN_BYTES, what);
  const { token, access_token } = Token.parse(JSON.parse(text.toString()));
  const found = token ?? access_token;
  if (found === undefined) throw new Error(`${url.host} answered no token for ${scope}`);
  return found;
}

export const oneOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header;
