/** The JSON Schema of a run configuration (`--run-config`), made from the settings that a submitter may set. */
import { shippedCards } from '@swefarm/agents';
import { AGENTS, fileSchema, type JsonSchema, RunRecord } from '@swefarm/shared';
import { z } from 'zod';
import { inner, SETTABLE, type SettableKeys } from './flags.ts';

type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** A name or file with weights, a set, or a list of sets (sets.ts). */
const Sets = z.union([z.string(), z.record(z.string(), z.json()), z.array(z.json())]);

/** Values that a file may have where the record of a run has the content of a card or of a set. */
const GIVEN: Readonly<Record<string, z.ZodType>> = {
  'agent.type': z.enum([...Object.keys(AGENTS), ...shippedCards()]),
  kind: z.enum(['validation', 'training', 'collection']),
  group_size: RunRecord.shape.group_size.nullable(),
  deadline_at: z.union([z.number().int(), z.string()]).nullable(),
  'agent.card': z.union([z.string(), z.record(z.string(), z.json())]),
  'agent.prompts': Sets,
  'agent.toolset': Sets,
};

export const runSchema = (): JsonSchema =>
  fileSchema('Run configuration of swefarm', settableObject(RunRecord.shape, SETTABLE, []));

/** Returns the schema of a section. A section of the first level whose keys are all comments is null. */
function sectionOf(shape: Shape, settable: SettableKeys, path: readonly string[]): z.ZodType {
  const made = settableObject(shape, settable, path);
  return path.length === 1 ? made.nullish() : made.optional();
}

/** Returns the object of the settable keys, all of which a file may leave out. */
function settableObject(shape: Shape, settable: SettableKeys, above: readonly string[]): z.ZodObject {
  return z.strictObject(
    Object.fromEntries(
      Object.entries(settable).map(([key, below]): [string, z.ZodType] => {
        const path = [...above, key];
        const recorded = shape[key] as z.ZodType;
        if (below !== true) return [key, sectionOf((inner(recorded) as z.ZodObject).shape, below, path)];
        const given = GIVEN[path.join('.')]?.describe(recorded.description ?? '') ?? recorded;
        return [key, given.optional()];
      }),
    ),
  );
}
