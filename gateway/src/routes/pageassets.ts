/** The built page as files, with headers by which nothing that a model wrote can run in it. */
import fastifyStatic from '@fastify/static';
import { errorMessage, type Log } from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import { ensurePage, PAGE_DIST } from '../page/built.ts';

/** Nothing from other origins, no inline script or style, no frame around the page. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

/** The page's own files at `/ui/`: public, since they have no data of the farm; the routes that they read need the token. */
export async function servePageAssets(app: FastifyInstance, log: Log): Promise<void> {
  const route = { config: { public: true } };
  app.get('/ui', route, (_request, reply) => reply.redirect('/ui/'));
  await app.register(fastifyStatic, { root: PAGE_DIST, serve: false, cacheControl: false });
  app.get<{ Params: { '*': string } }>('/ui/*', route, async (request, reply) => {
    try {
      await ensurePage(() => log.info('the page is built, once; requests for it wait'));
    } catch (error) {
      log.warn({ error: errorMessage(error) }, 'the page cannot be shown');
      return reply
        .code(503)
        .type('text/plain')
        .send(`${errorMessage(error)}\n`);
    }
    const path = request.params['*'] || 'index.html';
    // Names of built files contain their hash; only the page itself changes under one name.
    const isHashed = path.startsWith('assets/');
    reply.headers({
      ...HEADERS,
      'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    });
    return reply.sendFile(path);
  });
}
