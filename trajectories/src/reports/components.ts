import { type Spread, spreadOf } from '@swefarm/datasets';
import { mean } from '../output/tally.ts';
import type { LineFact } from './facts.ts';

export type Component = { rollouts: number; mean: number; spread: NonNullable<Spread> };

/** Maximum number of parts of a family in a report. Graders choose the names, so only the most frequent ones are shown. */
const MOST_NAMES = 50;

/** Returns the parts by family and name, without families whose rewards have no parts. `familyOf` returns null for an unknown family. */
export function componentsOf(
  facts: readonly LineFact[],
  familyOf: (fact: LineFact) => string | null,
): Record<string, Record<string, Component>> {
  const values = new Map<string, Map<string, number[]>>();
  for (const fact of facts) {
    for (const [name, value] of Object.entries(fact.components)) {
      const family = familyOf(fact) ?? 'unknown';
      const own = values.get(family) ?? new Map<string, number[]>();
      values.set(family, own);
      const known = own.get(name);
      if (known) known.push(value);
      else own.set(name, [value]);
    }
  }
  const inOrder = [...values].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(inOrder.map(([family, own]) => [family, ofFamily(own)]));
}

const ofFamily = (own: ReadonlyMap<string, readonly number[]>): Record<string, Component> =>
  Object.fromEntries(
    [...own]
      .toSorted(([a, m], [b, n]) => n.length - m.length || (a < b ? -1 : 1))
      .slice(0, MOST_NAMES)
      .flatMap(([name, values]): [string, Component][] => {
        const spread = spreadOf(values);
        return spread === null ? [] : [[name, { rollouts: values.length, mean: mean(values) ?? 0, spread }]];
      }),
  );
