/** The HTTP application that the gateway and the page of one file share: requests checked by zod, refusals in one form. */
import type { Server } from 'node:http';
import type { Log } from '@swefarm/shared';
import Fastify, { type FastifyHttpOptions, type FastifyInstance } from 'fastify';
import { validatorCompiler } from 'fastify-type-provider-zod';
import { answerErrors } from './access/refusal.ts';

/** Rollout ids stand in addresses. */
const MAX_PARAM_LENGTH = 500;

export function createApp(options: FastifyHttpOptions<Server>, log: Log): FastifyInstance {
  const app = Fastify({
    ...options,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
  });
  app.setValidatorCompiler(validatorCompiler);
  // Response schemas are the document of the API. Answers are not parsed by them: that would cost time and drop unknown keys.
  app.setSerializerCompiler(() => (body) => JSON.stringify(body));
  // Fastify reads plain text too, and then finds a body that is no object; 415 names the header instead.
  app.removeContentTypeParser('text/plain');
  app.setErrorHandler(answerErrors(log));
  return app;
}
