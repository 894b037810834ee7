import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { lockPath, shippedCardPath, shippedCards } from '../card/readcard.ts';
import { PythonLock } from './pythonlock.ts';

const pythonLocks = shippedCards().flatMap((name) => {
  const path = lockPath(shippedCardPath(name));
  const read = path === null ? null : JSON.parse(readFileSync(path, 'utf8'));
  return read?.kind === 'python' ? [{ name, read }] : [];
});

test('every lock of a shipped Python agent fixes interpreter, C library and packages', () => {
  expect(pythonLocks.map(({ name }) => name)).toContain('mini-swe-agent');
  for (const { name, read } of pythonLocks) {
    const lock = PythonLock.parse(read);
    const debian = lock.debian.map((one) => one.name);
    expect(debian, name).toEqual(
      expect.arrayContaining([`python${lock.python}-minimal`, 'libc6', 'libstdc++6']),
    );
    const names = lock.wheels.map((one) => one.name);
    expect(names, name).toEqual([...new Set(names)].sort());
    const left = lock.request.without.map((one) => one.replace(/==.*/, ''));
    expect(
      names.filter((one) => left.includes(one)),
      name,
    ).toEqual([]);
  }
});

test('a lock that would write outside of the bundle is refused', () => {
  const [first] = pythonLocks;
  for (const path of ['../etc', 'a/../../b', '/etc/passwd']) {
    expect(PythonLock.safeParse({ ...first?.read, drop: [path] }).success, path).toBe(false);
    expect(PythonLock.safeParse({ ...first?.read, programs: [path] }).success, path).toBe(false);
  }
});
