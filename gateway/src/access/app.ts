/** Creates the HTTP server of the gateway and of `swefarm show --web`: zod validates requests, and refusals have one form. */
import type { Server } from 'node:http';
import type { Log } from '@swefarm/shared';
import Fastify, { type FastifyHttpOptions } from 'fastify';
import { validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { answerErrors } from './refusal.ts';

/** Maximum length of a parameter in a route, sufficient for rollout ids. */
const MAX_PARAM_LENGTH = 500;

/** A server, or a scope of it, whose handlers have the types of their zod schemas. */
export type App = ReturnType<typeof createApp>;

export function createApp(options: FastifyHttpOptions<Server>, log: Log) {
  const app = Fastify({
    ...options,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  // Response schemas only document the API. Parsing answers would cost time and drop unknown keys.
  app.setSerializerCompiler(() => (body) => JSON.stringify(body));
  // Without the parser of plain text, Fastify answers 415 to plain text, and the message names the header.
  app.removeContentTypeParser('text/plain');
  app.setErrorHandler(answerErrors(log));
  return app;
}
