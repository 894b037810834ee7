/** Reads the chart's values.yaml with the comments above its keys, which describe them. */
import { isMap, isScalar, type Node, type Pair, parse, parseDocument, type YAMLMap } from 'yaml';

export type Value = {
  /** Keys from the top, such as `worker.store.type`. */
  path: string;
  description: string;
  /** JSON schema from the comment lines with `@`, which override the schema that follows from key and default. */
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
  // Only the last paragraph of the comments describes the key.
  const paragraph = comment.split(/\n[ ]*\n/).at(-1) ?? '';
  const lines = paragraph.split('\n').map((line) => line.trim());
  const pieces = lines.filter((line) => line.startsWith('@'));
  const description = lines
    .filter((line) => !line.startsWith('@'))
    .join(' ')
    .trim();
  if (description === '') throw new Error(`values.yaml: ${path} has no comment that describes it`);
  const given = pair.value?.toJSON() as unknown;
  const read = pieces.map((piece) => parse(piece.slice(1)) as Record<string, unknown>);
  const schema: Record<string, unknown> = Object.assign({}, usualSchema(key, given), ...read);
  const isGroup = isMap(pair.value) && pair.value.items.length > 0 && !('additionalProperties' in schema);
  return {
    ...{ path, description, schema },
    default: given,
    values: isGroup ? valuesOf(pair.value as YAMLMap, [...above, key]) : null,
  };
}

const ANY_KEYS = { additionalProperties: true };
const OBJECTS = { items: { type: 'object' } };
const PORT = { minimum: 1024, maximum: 65_535 };

/** Schemas of values that several parts have. Kubernetes or docs/configuration.md defines their form, except that of ports. */
const BY_NAME: Readonly<Record<string, Record<string, unknown>>> = {
  resources: ANY_KEYS,
  affinity: ANY_KEYS,
  config: ANY_KEYS,
  tolerations: OBJECTS,
  env: OBJECTS,
  port: PORT,
  metricsPort: PORT,
};

/** Schema of a value without a piece of its own: lists and empty maps have texts, and numbers are not negative. */
function usualSchema(key: string, given: unknown): Record<string, unknown> {
  if (BY_NAME[key]) return BY_NAME[key];
  if (Array.isArray(given)) return { items: { type: 'string' } };
  if (Number.isInteger(given)) return { minimum: 0 };
  const isEmpty = typeof given === 'object' && given !== null && Object.keys(given).length === 0;
  return isEmpty ? { additionalProperties: { type: 'string' } } : {};
}
