/** `GET /v1/openapi.json`: the OpenAPI document, generated from the schemas of the routes. */
import swagger from '@fastify/swagger';
import { Message, Report, Result, softwareVersion } from '@swefarm/shared';
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import { RefusalBody } from '../access/refusal.ts';
import { ArtifactBody, TrajectoryBody } from '../page/artifactschemas.ts';
import { documented } from './answers.ts';

/** Schemas that the document names under `components`. */
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
  { name: 'runs', description: 'Submit a run, read its results as they arrive, cancel it.' },
  { name: 'rollouts', description: 'The state, the result and the artifact of one rollout.' },
  { name: 'sessions', description: 'Rollouts whose commands come from the caller, one at a time.' },
  { name: 'policies', description: 'What a trainer serves: version, endpoints, state.' },
  {
    name: 'page',
    description: 'Data of the page at /ui/; it changes with the page and is not a stable interface.',
  },
  { name: 'gateway', description: 'The gateway itself.' },
];

const DESCRIPTION =
  'The API of `swefarm serve`. Every refusal has the form of the schema `Refusal`: a code for scripts, a message for people, and the field of the request that is wrong. Later versions may add fields to answers.';

const zodToJsonConfig = {
  override({ zodSchema, jsonSchema }: OverrideContext) {
    const { def } = zodSchema._zod;
    // zod forbids additional properties, but later versions of the gateway may add keys to answers.
    if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties;
    if (def.type === 'undefined') jsonSchema.type = 'null';
  },
};

type OverrideContext = { zodSchema: z.core.$ZodTypes; jsonSchema: z.core.JSONSchema.BaseSchema };

/** Registers the OpenAPI document. The document contains the routes under `/v1/` that are added to `app` afterwards. */
export async function registerOpenapi(app: App): Promise<void> {
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
    transform: ({ schema, url, ...route }) =>
      url.startsWith('/v1/')
        ? transform({ schema: { ...schema, tags: [tagOf(url)] }, url, ...route })
        : { schema: { hide: true }, url },
    transformObject: (document) => withoutUnused(transformObject(document)),
  });
}

/** Returns the tag with the name of the first part below `/v1/`, otherwise `gateway`. */
const tagOf = (url: string): string =>
  TAGS.find(({ name }) => url.startsWith(`/v1/${name}`))?.name ?? 'gateway';

/** Removes unused schemas: each named schema is generated in two forms, for requests and for answers. */
function withoutUnused<Document extends object>(document: Document): Document {
  const { components } = document as { components?: { schemas?: Record<string, unknown> } };
  const text = JSON.stringify(document);
  for (const name of Object.keys(components?.schemas ?? {})) {
    if (!text.includes(`"#/components/schemas/${name}"`)) delete components?.schemas?.[name];
  }
  return document;
}

export function openapiRoutes(app: App): void {
  const document = z.looseObject({ openapi: z.string() });
  app.get(
    '/v1/openapi.json',
    documented('This document', document, {}),
    async () => app.swagger() as { openapi: string },
  );
}
