/** The built page as files, with the headers that keep whatever a model wrote from doing anything. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';

const BUILT = fileURLToPath(new URL('../../page/dist', import.meta.url));

/** Nothing from elsewhere, no inline script or style, no frame around it. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

export const NOT_BUILT = 'the page is not built: run "npm run page" in the repository, then start this again';

export const pageIsBuilt = (): boolean => existsSync(`${BUILT}/index.html`);

/** The page's own files at `/ui/`: public, for they hold nothing of the farm; what they ask for needs the token. */
export async function serveAssets(app: FastifyInstance): Promise<void> {
  const route = { config: { public: true } };
  app.get('/ui', route, (_request, reply) => reply.redirect('/ui/'));
  if (!pageIsBuilt()) {
    app.get('/ui/*', route, (_request, reply) => reply.code(503).type('text/plain').send(`${NOT_BUILT}\n`));
    return;
  }
  await app.register(fastifyStatic, { root: BUILT, serve: false, cacheControl: false });
  app.get<{ Params: { '*': string } }>('/ui/*', route, (request, reply) => {
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
