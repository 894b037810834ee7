/** Reads cards: those that come with the farm (`agents/cards/NAME/card.yaml`), and those of users. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AgentCard, nearest, readYaml, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { problemsOf } from './check.ts';

const SHIPPED = fileURLToPath(new URL('../../cards/', import.meta.url));
const LOCK = 'lock.json';

/** Returns the names of the cards that come with the farm. */
export const shippedCards = (): string[] =>
  readdirSync(SHIPPED, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(SHIPPED, entry.name, 'card.yaml')))
    .map(({ name }) => name)
    .sort();

/** Returns the path of a card that comes with the farm. Throws UsageError that names the cards that exist. */
export function shippedCardPath(name: string): string {
  const names = shippedCards();
  if (names.includes(name)) return join(SHIPPED, name, 'card.yaml');
  const best = nearest(name, names);
  const hint = best === null ? `cards: ${names.join(', ')}` : `did you mean ${best}?`;
  throw new UsageError(
    `no card of an agent "${name}" comes with swefarm; ${hint} (or give the path of a card)`,
  );
}

/** Reads a card that comes with the farm. Throws UsageError. */
export const readShippedCard = (name: string): AgentCard => readCard(shippedCardPath(name));

/** Returns the path of the lock file beside a card; null if there is none. */
export function lockPath(cardPath: string): string | null {
  const path = join(dirname(cardPath), LOCK);
  return existsSync(path) ? path : null;
}

/**
 * Reads and checks a card. The lock file beside it, `lock.json`, determines `bundle.lock`.
 *
 * @throws UsageError with file, field and expectation of each problem
 */
export function readCard(path: string): AgentCard {
  const card = parseCard(`card ${path}`, readYaml(path, `card ${path}`));
  const lock = lockPath(path);
  if (lock === null) return card;
  const digest = createHash('sha256').update(readFileSync(lock)).digest('hex');
  if (card.bundle.lock !== null && card.bundle.lock !== digest)
    throw new UsageError(`card ${path}: bundle.lock: ${lock} has sha256 ${digest}; remove the field`);
  return { ...card, bundle: { ...card.bundle, lock: digest } };
}

/** Checks a card that was parsed. `where` is the start of the error. Throws UsageError. */
export function parseCard(where: string, tree: unknown): AgentCard {
  const parsed = AgentCard.safeParse(tree);
  const problems = parsed.success
    ? problemsOf(parsed.data).map(({ field, message }) => `${field}: ${message}`)
    : parsed.error.issues.flatMap(describe);
  if (parsed.success && problems.length === 0) return parsed.data;
  const [only] = problems;
  if (problems.length === 1) throw new UsageError(`${where}: ${only}`);
  throw new UsageError([`${where}:`, ...problems.map((line) => `  ${line}`)].join('\n'));
}

function describe(issue: z.core.$ZodIssue): string[] {
  const at = issue.path.map(String).join('.');
  if (issue.code !== 'unrecognized_keys') return [`${at || 'the file'}: ${issue.message}`];
  const known = keysAt(AgentCard, issue.path);
  return issue.keys.map((key) => {
    const best = nearest(key, known);
    const hint = best === null ? `known here: ${known.join(', ')}` : `did you mean ${best}?`;
    return `${at === '' ? '' : `${at}.`}${key}: unknown key; ${hint}`;
  });
}

/** Returns the keys that the schema knows at a path; empty if it is not an object. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional)
    return keysAt(schema.unwrap(), path);
  const [key, ...rest] = path;
  if (schema instanceof z.ZodObject) {
    const inner: z.core.$ZodType | undefined = schema.shape[String(key)];
    return key === undefined ? Object.keys(schema.shape) : inner ? keysAt(inner, rest) : [];
  }
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest);
  return schema instanceof z.ZodRecord ? keysAt(schema.valueType, rest) : [];
}
