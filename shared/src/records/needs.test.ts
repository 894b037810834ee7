/**
 * The shape of what workers are given. When this fails, a record can say something that workers of the last release do not know
 * of. If they may miss it (it changes nothing that a worker does), write the shape anew with `-u`. Otherwise raise UNDERSTOOD
 * in needs.ts, have whoever writes the new word set `needs` to it, and then write the shape anew.
 */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { InstanceEnvironment } from './environment.ts';
import { Instance } from './instance.ts';
import { RolloutJob, RunRecord } from './job.ts';
import { needsOf, UNDERSTOOD, withNeeds } from './needs.ts';

/** One line per field, with its words where it is one of several. */
function shapeOf(schema: unknown, path = ''): string[] {
  const { properties, anyOf, items, type, const: only, enum: words } = schema as Record<string, unknown>;
  if (properties)
    return Object.entries(properties).flatMap(([key, inner]) =>
      shapeOf(inner, path === '' ? key : `${path}.${key}`),
    );
  if (Array.isArray(anyOf)) return anyOf.flatMap((inner) => shapeOf(inner, path));
  if (items) return shapeOf(items, `${path}[]`);
  if (Array.isArray(words)) return words.map((word) => `${path} = ${String(word)}`);
  return [`${path}: ${only === undefined ? String(type ?? 'any') : `= ${String(only)}`}`];
}

test('records say what workers of this level know of, and no more', async () => {
  const shapes = Object.entries({ RunRecord, RolloutJob, Instance }).map(([name, schema]) => {
    const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
    return `${name}\n${shapeOf(json)
      .map((line) => `  ${line}`)
      .join('\n')}`;
  });
  await expect(`level ${UNDERSTOOD}\n${shapes.join('\n')}\n`).toMatchFileSnapshot('./needs.shape.txt');
});

test('whatever lies in a record, it needs something or nothing', () => {
  expect(
    [{ needs: 2 }, { needs: 1e9 }, { needs: -1 }, { needs: '2' }, {}, null, 7, [2]].map(needsOf),
  ).toEqual([...[2, 1e9, 0, 0, 0, 0, 0, 0]]);
});

test('an instance asks for level 3 or 4 where older workers would miss what it says, and only there', () => {
  const row = Instance.parse({
    ...{
      instance_id: 'a__b-1',
      repo: 'a/b',
      base_commit: 'c',
      problem_statement: '',
      image: 'i',
      family: 'custom',
    },
    ...{ FAIL_TO_PASS: ['t'], PASS_TO_PASS: [] },
  });
  expect(withNeeds(row)).toEqual(row);
  const needs = (changes: Partial<Instance>) => withNeeds({ ...row, ...changes }).needs;
  expect(needs({ environment: InstanceEnvironment.parse({}) })).toBe(3);
  expect(needs({ family: 'multi-swe' })).toBe(3);
  const file = { media_type: 'image/png', sha256: '', bytes: 1, data: 'QQ==' } as const;
  expect(needs({ pictures: [{ address: 'a', file }] })).toBe(4);
  expect(needs({ pictures: [{ address: 'a' }] })).toBeUndefined();
  expect(needs({ needs: 2 })).toBe(2);
  expect(needs({ needs: 4, family: 'multi-swe' })).toBe(4);
});
