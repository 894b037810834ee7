/** The built page as files, with the headers that keep whatever a model wrote from doing anything. */
import fastifyStatic from '@fastify/static';
import { errorMessage, type Log } from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import { ensurePage, PAGE_DIST } from '../../page/built.ts';

/** Nothing from elsewhere, no inline script or style, no frame around it. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

/** The page's own files at `/ui/`: public, for they hold nothing of the farm; what they ask for needs the token. */
export async function servePageAssets(app: FastifyInstance, log: Log): Promise<void> {
  const route = { config: { public: true } };
  app.get('/ui', route, (_request, reply) => reply.redirect('/ui/'));
  await app.register(fastifyStatic, { root: PAGE_DIST, serve: false, cacheControl: false });
  app.get<{ Params: { '*': string } }>('/ui/*', route, async (request, reply) => {
    try {
      await ensurePage(() => log.info('the page is built, once; whoever asks for it waits'));
    } catch (error) {
      log.warn({ error: errorMessage(error) }, 'the page cannot be shown');
      return reply
        .code(503)
        .type('text/plain')
        .send(`${errorMessage(error)}\n`);
    }
    const path = request.params['*'] || 'index.html';
    // Names of built files carry their hash; only the page itself changes under one name.
    const lasting = path.startsWith('assets/');
    reply.headers({
      ...HEADERS,
      'cache-control': lasting ? 'public, max-age=31536000, immutable' : 'no-cache',
    });
    return reply.sendFile(path);
  });
}
