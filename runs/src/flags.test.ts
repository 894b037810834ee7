import { RunRecord } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { toJSONSchema, type z } from 'zod';
import { RUN_FLAGS, SETTABLE, type SettableKeys } from './flags.ts';

/** Fields of a record that a submitter cannot set. */
const MADE = [
  'format',
  'needs',
  'run_id',
  'created_at',
  'dataset.path',
  'dataset.sha256',
  'dataset.instances',
  'open',
  'dry_run',
  'forecast',
  'until.strata',
  'branch_of.rollout_id',
  'branch_of.turn',
  'policy.api_key_ref',
  'policy.price.prompt',
  'policy.price.completion',
  'reward.table',
  'reward.hash',
];

const pathsIn = (keys: SettableKeys, prefix = ''): string[] =>
  Object.entries(keys).flatMap(([key, below]) =>
    below === true ? [`${prefix}${key}`] : pathsIn(below, `${prefix}${key}.`),
  );

/** Returns the dotted paths of all fields in the JSON schema of a record. */
function leaves(schema: z.core.JSONSchema.JSONSchema, prefix = ''): string[] {
  const own = schema.properties ? schema : schema.anyOf?.find((one) => (one as typeof schema).properties);
  const properties = (own as typeof schema | undefined)?.properties;
  if (!properties) return [prefix];
  return Object.entries(properties).flatMap(([key, below]) =>
    leaves(below as typeof schema, prefix === '' ? key : `${prefix}.${key}`),
  );
}

test('every field of a run record is a setting or listed here as made by its writer', () => {
  const fields = leaves(toJSONSchema(RunRecord, { io: 'input', unrepresentable: 'any' }));
  // A submitter sets the card as a whole.
  const whole = new Set(
    fields.map((field) =>
      field.replace(/^agent\.card\..*/, 'agent.card').replace(/^forecast\..*/, 'forecast'),
    ),
  );
  expect([...whole].filter((field) => !MADE.includes(field)).sort()).toEqual(pathsIn(SETTABLE).sort());
});

test('each flag sets one setting, and a flag without a value sets a constant', () => {
  const names = RUN_FLAGS.map(({ flag }) => flag.split(' ')[0]);
  expect(new Set(names).size).toBe(names.length);
  for (const { flag, constant, help } of RUN_FLAGS) {
    expect([flag, constant === undefined]).toEqual([flag, flag.includes(' ')]);
    expect(help).toMatch(/^\S.*[^.\s]$/);
  }
});
