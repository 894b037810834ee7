/**
 * The shape of what workers are given. When this fails, a record can say something that workers of the last release do not know
 * of. If they may miss it (it changes nothing that a worker does), write the shape anew with `-u`. Otherwise raise UNDERSTOOD
 * in needs.ts, set `needs` to it where the new word is written, and then write the shape anew.
 */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { Instance } from './instance.ts';
import { RolloutJob, RunRecord } from './job.ts';
import { needsOf, UNDERSTOOD } from './needs.ts';

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

test('a record asks for the level that it names, and else for the first', () => {
  expect(
    [{ needs: 2 }, { needs: 1e9 }, { needs: -1 }, { needs: '2' }, {}, null, 7, [2]].map(needsOf),
  ).toEqual([...[2, 1e9, 1, 1, 1, 1, 1, 1]]);
});
