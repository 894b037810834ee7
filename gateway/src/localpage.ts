/** Serves the page of one result file on the loopback, for `swefarm show --web`. */
import { timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { type Log, newId } from '@swefarm/shared';
import type { FastifyRequest } from 'fastify';
import { createApp } from './access/app.ts';
import { Refusal } from './access/refusal.ts';
import type { PageSource } from './page/data.ts';
import { servePageData } from './routes/page.ts';
import { servePageAssets } from './routes/pageassets.ts';

export interface LocalPage extends AsyncDisposable {
  /** Address with the key after `#`. Browsers do not send this part of an address to a server. */
  readonly url: string;
}

/** Listens on the loopback. Requests need the key, because other users of the machine can reach the port. */
export async function servePage(source: PageSource, log: Log): Promise<LocalPage> {
  const key = newId() + newId();
  const app = createApp({}, log);
  const expected = Buffer.from(key);
  const isGranted = (request: FastifyRequest): boolean => {
    const given = Buffer.from((request.headers.authorization ?? '').replace(/^Bearer /, ''));
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
  app.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.public || isGranted(request)) return;
    throw new Refusal(401, 'unauthorized', 'open the address that swefarm show printed, with its key');
  });
  app.get('/', { config: { public: true } }, (_request, reply) => reply.redirect('/ui/'));
  await servePageAssets(app, log);
  servePageData(app, source, isGranted);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}/ui/#key=${key}`,
    [Symbol.asyncDispose]: () => app.close(),
  };
}
