/** Counts and distributions of the named parts of rewards. Pure. */
import { type Spread, spreadOf } from '@swefarm/datasets';
import { mean } from '../output/tally.ts';
import type { LineFact } from './facts.ts';

export type Component = { rollouts: number; mean: number; spread: NonNullable<Spread> };

/** Graders choose the names; a family has at most so many here, the most frequent ones. */
const MOST_NAMES = 50;

/** By family, then by name; a family whose rewards have no parts is absent. @param familyOf null: not known */
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
