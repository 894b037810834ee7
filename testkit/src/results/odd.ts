/**
 * Makes malformed records, such as bugs, other programs or other versions of the farm may write. Each change replaces or removes a value
 * in a tree, or adds an unknown field.
 */

/** `JSON.stringify` writes NaN and infinities as null; {@link oddJson} writes `@infinity` as 1e999, which parses to infinity. */
const VALUES: readonly unknown[] = [
  ...[1e300, -1e300, -1, 0, 0.5, 3, 200_000_000, 2 ** 31, 2 ** 53],
  ...[Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, '@infinity'],
  ...[null, true, false, '', 'x', '7', '\u0000', '*', 'x'.repeat(70_000)],
  ...[[], [1], {}, { of_tomorrow: 1 }, [[[[]]]]],
];

/** Selects the place and the change, by any two integers from 0. */
export type Oddness = { at: number; what: number };

type Tree = Record<string, unknown>;

/** A copy of the tree with these places changed: replaced, removed, or with an unknown field added beside them. */
export function oddTree(whole: object, changes: readonly Oddness[]): { tree: object; description: string } {
  const tree = structuredClone(whole) as Tree;
  const description = changes.map(({ at, what }) => {
    const fields = fieldsOf(tree);
    const field = fields[at % fields.length];
    if (!field) return 'nothing';
    const [parent, key, name] = field;
    const kind = what % (VALUES.length + 2);
    if (kind === VALUES.length) delete parent[key];
    else if (kind === VALUES.length + 1) Object.assign(parent, { of_tomorrow: { [key]: parent[key] } });
    else parent[key] = VALUES[kind];
    return `${name} ${kind < VALUES.length ? `= ${String(JSON.stringify(VALUES[kind])).slice(0, 30)}` : kind}`;
  });
  return { tree, description: description.join(', ') };
}

/** Serialises to JSON, with an infinity where one was requested. */
export const oddJson = (tree: unknown): string => JSON.stringify(tree).replaceAll('"@infinity"', '1e999');

/** Every place of the tree: its parent, its key and its path. */
function fieldsOf(tree: Tree, path = ''): [parent: Tree, key: string, name: string][] {
  return Object.entries(tree).flatMap(([key, value]): [Tree, string, string][] => {
    const name = path === '' ? key : `${path}.${key}`;
    const inner = value !== null && typeof value === 'object' ? fieldsOf(value as Tree, name) : [];
    return [[tree, key, name], ...inner];
  });
}
