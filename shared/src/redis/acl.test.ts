import { expect, test } from 'vitest';
import { aclRules, KEY_FAMILIES } from './acl.ts';
import { keysFor } from './keys.ts';
import { QUEUES } from './queue.ts';

/** Returns all keys without the prefix; variable arguments become `*`. */
function allKeys(): string[] {
  const { prefix, queue, ...rest } = keysFor('{p}');
  const walk = (value: unknown): string[] => {
    if (typeof value === 'string') return [value];
    if (typeof value === 'function') return walk((value as (...args: string[]) => unknown)('*', '*'));
    return Object.values(value as object).flatMap(walk);
  };
  const found = [...walk(rest), ...QUEUES.map((name) => queue(name, '*'))];
  return found.map((key) => key.slice(prefix.length + 1));
}

const covers = (pattern: string, key: string): boolean =>
  pattern.endsWith('*') ? key.startsWith(pattern.slice(0, -1)) : key === pattern;

test('every key of the farm belongs to one family, and every family has a key', () => {
  const keys = allKeys();
  expect(keys.length).toBeGreaterThan(40);
  const families = keys.map((key) => KEY_FAMILIES.filter(({ pattern }) => covers(pattern, key)));
  const homeless = keys.filter((_, at) => families[at]?.length !== 1);
  expect(homeless, 'keys without a family, or with two, in acl.ts').toEqual([]);
  const unused = KEY_FAMILIES.filter((family) => !families.flat().includes(family));
  expect(
    unused.map(({ pattern }) => pattern),
    'families without a key',
  ).toEqual([]);
});

test('a family of another prefix or of a longer name is not covered', () => {
  const patterns = aclRules('worker', 'a').filter((word) => word.includes('~'));
  expect(patterns.every((word) => /^(%R)?~a:[^*]+\*?$/.test(word))).toBe(true);
});

test('read-only keys of a worker are marked, unneeded ones absent; role farm has no marks', () => {
  const worker = aclRules('worker', '{p}');
  expect(worker).toContain('%R~{p}:secret:*');
  expect(worker).toContain('%R~{p}:policy:*');
  expect(worker.filter((word) => word.endsWith('{p}:policies'))).toEqual([]);
  expect(aclRules('producer', '{p}')).toContain('~{p}:secret:*');
  expect(aclRules('farm', '{p}').filter((word) => word.startsWith('%'))).toEqual([]);
  expect(aclRules('farm', '{p}')).not.toContain('&*');
});
