/**
 * Finds the callers of each request by its token: `Authorization: Bearer TOKEN`, or Basic with the token as password. Gym's clients send
 * Basic when the `host` of an entry is `farm:TOKEN@name`; they cannot send Bearer.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Caller } from './callers.ts';
import { Refusal } from './refusal.ts';

export function authenticate(app: FastifyInstance, callers: readonly Caller[]): void {
  const known = callers.map((caller) => ({
    caller,
    digest: caller.token === null ? null : digestOf(caller.token.reveal()),
  }));
  app.decorate('callers', callers);
  app.decorateRequest('callers');
  app.addHook('onRequest', async (request, reply) => {
    const token = tokenOf(request);
    const given = token === null ? null : digestOf(token);
    request.callers = known
      .filter(({ digest }) =>
        given === null || digest === null ? digest === given : timingSafeEqual(given, digest),
      )
      .map(({ caller }) => caller);
    if (request.callers.length > 0 || request.routeOptions.config.public) return;
    reply.header('www-authenticate', 'Bearer');
    const problem =
      token === null ? 'expected "Bearer TOKEN", or Basic with the token as password' : 'unknown token';
    throw new Refusal(401, 'unauthorized', `authorization: ${problem}`, { field: 'authorization' });
  });
}

/** Digests have equal lengths, which `timingSafeEqual` needs. */
const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Returns the token of a request; null: the request has no token. */
export function tokenOf(request: Pick<FastifyRequest, 'headers'>): string | null {
  const [scheme = '', value = ''] = (request.headers.authorization ?? '').split(/\s+/, 2);
  if (/^bearer$/i.test(scheme) && value !== '') return value;
  if (!/^basic$/i.test(scheme)) return null;
  const pair = Buffer.from(value, 'base64').toString('utf8');
  return pair.slice(pair.indexOf(':') + 1) || null;
}
