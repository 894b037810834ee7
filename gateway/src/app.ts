/** Creates the HTTP server of the gateway and of `swefarm show --web`: zod validates requests, and refusals have one form. */
import type { Server } from 'node:http';
import type { Log } from '@swefarm/shared';
import Fastify, { type FastifyHttpOptions, type FastifyInstance } from 'fastify';
import { validatorCompiler } from 'fastify-type-provider-zod';
import { answerErrors } from './access/refusal.ts';

/** Maximum length of a parameter in a route, sufficient for rollout ids. */
const MAX_PARAM_LENGTH = 500;

export function createApp(options: FastifyHttpOptions<Server>, log: Log): FastifyInstance {
  const app = Fastify({
    ...options,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
  });
  app.setValidatorCompiler(validatorCompiler);
  // Response schemas only document the API. Parsing answers would cost time and drop unknown keys.
  app.setSerializerCompiler(() => (body) => JSON.stringify(body));
  // Without the parser of plain text, Fastify answers 415 to plain text, and the message names the header.
  app.removeContentTypeParser('text/plain');
  app.setErrorHandler(answerErrors(log));
  return app;
}
