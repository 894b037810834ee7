/** JSON Schemas with which editors complete and check files. */
import { z } from 'zod';
import { ALL_KEYS } from './keys.ts';

export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Returns the JSON Schema of a file: a mapping that may have these keys, and `$schema`. Values that no file can have are left out. */
export function fileSchema(title: string, keys: z.ZodObject): JsonSchema {
  const made = z.toJSONSchema(keys.extend({ $schema: z.string().optional() }), {
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      if (zodSchema._zod.def.type === 'custom') jsonSchema.not = {};
      const { anyOf } = jsonSchema;
      if (anyOf) jsonSchema.anyOf = anyOf.filter((one) => JSON.stringify(one) !== '{"not":{}}');
    },
  });
  return { ...made, title };
}

/** Returns the schema of a configuration file. Producer and worker may share the file, and null leaves a key unset. */
export const configSchema = (): JsonSchema =>
  fileSchema(
    'Configuration of swefarm',
    z.strictObject(
      Object.fromEntries(
        Object.entries(ALL_KEYS).map(([name, { schema, doc, shown }]) => [
          name,
          schema.nullish().describe(shown === '' ? doc : `${doc} Default: ${shown}`),
        ]),
      ),
    ),
  );
