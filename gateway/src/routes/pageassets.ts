/** Serves the files of the built page, with headers that stop browsers from running scripts in the output of models. */
import fastifyStatic from '@fastify/static';
import { errorMessage, type Log } from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import { ensurePage, PAGE_DIST } from '../page/built.ts';

/** Headers that forbid other origins, inline scripts and styles, and frames. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

/** Serves the files at `/ui/`. They are public, because they contain no data. */
export async function servePageAssets(app: FastifyInstance, log: Log): Promise<void> {
  const route = { config: { public: true } };
  app.get('/ui', route, (_request, reply) => reply.redirect('/ui/'));
  await app.register(fastifyStatic, { root: PAGE_DIST, serve: false, cacheControl: false });
  app.get<{ Params: { '*': string } }>('/ui/*', route, async (request, reply) => {
    try {
      await ensurePage(() => log.info('page build started: requests for the page wait'));
    } catch (error) {
      log.warn({ error: errorMessage(error) }, 'page not built');
      return reply
        .code(503)
        .type('text/plain')
        .send(`${errorMessage(error)}\n`);
    }
    const path = request.params['*'] || 'index.html';
    // The name of an asset contains a hash of its content, so browsers may cache the asset.
    const isHashed = path.startsWith('assets/');
    reply.headers({
      ...HEADERS,
      'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    });
    return reply.sendFile(path);
  });
}
