/** Reads the chart's values.yaml with the comments above its keys, which describe them. */
import { isMap, isScalar, type Node, type Pair, parse, parseDocument, type YAMLMap } from 'yaml';

export type Value = {
  /** Keys from the top, such as `worker.store.type`. */
  path: string;
  description: string;
  /** A piece of JSON schema that a comment line with `@` gives; overrides what follows from the default. */
  schema: Record<string, unknown>;
  /** The default; for a group its values. */
  default: unknown;
  /** The values below a group; null for a single value. */
  values: Value[] | null;
};

/** Throws an Error that names the key that has no description, or a piece of schema that cannot be read. */
export function readValues(text: string): Value[] {
  const document = parseDocument(text);
  if (document.errors[0]) throw document.errors[0];
  if (!isMap(document.contents)) throw new Error('values.yaml: no map');
  return valuesOf(document.contents, []);
}

function valuesOf(map: YAMLMap, above: readonly string[]): Value[] {
  return map.items.map((pair, index) => readValue(pair as Pair<Node, Node>, above, index === 0 ? map : null));
}

/** @param map the group that the pair is the first of: the parser gives that group the comment above its first key */
function readValue(pair: Pair<Node, Node>, above: readonly string[], map: YAMLMap | null): Value {
  const key = String(isScalar(pair.key) ? pair.key.value : pair.key);
  const path = [...above, key].join('.');
  const comment = pair.key.commentBefore ?? (above.length > 0 ? map?.commentBefore : null) ?? '';
  // What an empty line parts from it is not about the key.
  const paragraph = comment.split(/\n[ ]*\n/).at(-1) ?? '';
  const lines = paragraph.split('\n').map((line) => line.trim());
  const pieces = lines.filter((line) => line.startsWith('@'));
  const description = lines
    .filter((line) => !line.startsWith('@'))
    .join(' ')
    .trim();
  if (description === '') throw new Error(`values.yaml: ${path} has no comment that describes it`);
  const schema = Object.assign({}, ...pieces.map((piece) => parse(piece.slice(1)))) as Record<
    string,
    unknown
  >;
  const isGroup = isMap(pair.value) && pair.value.items.length > 0 && !('additionalProperties' in schema);
  return {
    ...{ path, description, schema },
    default: pair.value?.toJSON() as unknown,
    values: isGroup ? valuesOf(pair.value as YAMLMap, [...above, key]) : null,
  };
}
