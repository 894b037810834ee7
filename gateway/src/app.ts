/** The HTTP application of the gateway and of the page of one file: zod validates requests, refusals have one form. */
import type { Server } from 'node:http';
import type { Log } from '@swefarm/shared';
import Fastify, { type FastifyHttpOptions, type FastifyInstance } from 'fastify';
import { validatorCompiler } from 'fastify-type-provider-zod';
import { answerErrors } from './access/refusal.ts';

/** Rollout ids are parts of addresses. */
const MAX_PARAM_LENGTH = 500;

export function createApp(options: FastifyHttpOptions<Server>, log: Log): FastifyInstance {
  const app = Fastify({
    ...options,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
  });
  app.setValidatorCompiler(validatorCompiler);
  // Response schemas document the API only; parsing answers would cost time and drop unknown keys.
  app.setSerializerCompiler(() => (body) => JSON.stringify(body));
  // Without this parser Fastify answers 415 for plain text, which names the header.
  app.removeContentTypeParser('text/plain');
  app.setErrorHandler(answerErrors(log));
  return app;
}
