/** `GET /v1/openapi.json`: the OpenAPI document of `/v1`, made from the schemas of its routes. */
import swagger from '@fastify/swagger';
import { Message, Report, Result, softwareVersion } from '@swefarm/shared';
import type { FastifyInstance } from 'fastify';
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod';
import { z } from 'zod';
import { RefusalBody } from '../access/refusal.ts';
import { ArtifactBody, TrajectoryBody } from '../page/artifactschemas.ts';
import { refusals } from './answers.ts';

/** Schemas that the document has once, under `components`. Descriptions of fields stand in the same registry of zod. */
const NAMED = {
  Refusal: RefusalBody,
  Result,
  Report,
  Message,
  Trajectory: TrajectoryBody,
  Artifact: ArtifactBody,
};
for (const [id, schema] of Object.entries(NAMED)) z.globalRegistry.add(schema, { id });

const TAGS = [
  { name: 'runs', description: 'Submit a run, take its results as they come, cancel it.' },
  { name: 'rollouts', description: 'The state, the result and the artifact of one rollout.' },
  { name: 'sessions', description: 'Rollouts whose commands come from the caller, one at a time.' },
  { name: 'policies', description: 'What a trainer serves: version, endpoints, state.' },
  {
    name: 'page',
    description: "What the page at /ui/ reads; it changes with the page, and is no caller's to rely on.",
  },
  { name: 'gateway', description: 'The gateway itself.' },
];

const DESCRIPTION =
  'The API of `swefarm serve`. Every refusal has the form of the schema `Refusal`: a code for scripts, a message for people, and the field of the request that is wrong. Answers may get more fields in later versions.';

const zodToJsonConfig = {
  override({ zodSchema, jsonSchema }: OverrideContext) {
    const { def } = zodSchema._zod;
    // zod closes objects that it would strip of unknown keys; an answer may get more keys in a later version.
    if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties;
    // An answer without a body.
    if (def.type === 'undefined') jsonSchema.type = 'null';
  },
};

type OverrideContext = { zodSchema: z.core.$ZodTypes; jsonSchema: z.core.JSONSchema.BaseSchema };

/** Registers the document; of the routes that `app` gets later, those under `/v1/` are in it. */
export async function registerOpenapi(app: FastifyInstance): Promise<void> {
  const transform = createJsonSchemaTransform({ zodToJsonConfig });
  const transformObject = createJsonSchemaTransformObject({ zodToJsonConfig });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'swefarm gateway', version: softwareVersion(), description: DESCRIPTION },
      tags: TAGS,
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          basic: { type: 'http', scheme: 'basic', description: 'The token is the password.' },
        },
      },
      security: [{ bearer: [] }, { basic: [] }],
    },
    transform: (route) =>
      route.url.startsWith('/v1/') ? transform(route) : { schema: { hide: true }, url: route.url },
    transformObject: (document) => withoutUnused(transformObject(document)),
  });
}

/** Each named schema has a form for requests too, which most do not need. */
function withoutUnused<Document extends object>(document: Document): Document {
  const { components } = document as { components?: { schemas?: Record<string, unknown> } };
  const text = JSON.stringify(document);
  for (const name of Object.keys(components?.schemas ?? {})) {
    if (!text.includes(`"#/components/schemas/${name}"`)) delete components?.schemas?.[name];
  }
  return document;
}

export function openapiRoutes(app: FastifyInstance): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    '/v1/openapi.json',
    {
      schema: {
        tags: ['gateway'],
        summary: 'This document',
        response: { 200: z.looseObject({ openapi: z.string() }), ...refusals() },
      },
    },
    async () => app.swagger() as { openapi: string },
  );
}
