/**
 * The shape of the records that workers read. When this test fails, a record can contain something that workers of the last release do not
 * understand. If they may ignore it, update the shape with `-u`. Otherwise increment UNDERSTOOD in needs.ts, write that level as `needs`
 * of the records that use it, and then update the shape.
 */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { Instance } from './instance.ts';
import { RolloutJob, RunRecord } from './job.ts';
import { needsOf, UNDERSTOOD } from './needs.ts';

/** Returns one line for each field, or for each value of an enum. */
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

test('records have the shape of their level', async () => {
  const shapes = Object.entries({ RunRecord, RolloutJob, Instance }).map(([name, schema]) => {
    const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
    return `${name}\n${shapeOf(json)
      .map((line) => `  ${line}`)
      .join('\n')}`;
  });
  await expect(`level ${UNDERSTOOD}\n${shapes.join('\n')}\n`).toMatchFileSnapshot('./needs.shape.txt');
});

test('a record without a level has the first one', () => {
  expect(
    [{ needs: 2 }, { needs: 1e9 }, { needs: -1 }, { needs: '2' }, {}, null, 7, [2]].map(needsOf),
  ).toEqual([...[2, 1e9, 1, 1, 1, 1, 1, 1]]);
});
