import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CARD } from './card.fixture.ts';
import { parseCard, readCard, readShippedCard, shippedCards } from './readcard.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'swefarm-card-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const written = (text: string): string => {
  writeFileSync(join(folder, 'card.yaml'), text);
  return join(folder, 'card.yaml');
};

test('the lock file beside a card determines the lock of its bundle', () => {
  const path = written(JSON.stringify(CARD));
  expect(readCard(path).bundle.lock).toBeNull();
  writeFileSync(join(folder, 'lock.json'), '{}');
  const lock = createHash('sha256').update('{}').digest('hex');
  expect(readCard(path).bundle.lock).toBe(lock);
  const other = { ...CARD, bundle: { name: 'toy', lock: 'a'.repeat(64) } };
  expect(() => readCard(written(JSON.stringify(other)))).toThrow(`lock.json has sha256 ${lock}`);
});

test.each(shippedCards())('the card %s is usable', (name) => {
  const card = readShippedCard(name);
  expect(card.name).toBe(name);
  expect(card.bundle.lock).toMatch(/^[0-9a-f]{64}$/);
});

test('an unknown name is refused with the nearest card', () => {
  expect(() => readShippedCard('codx')).toThrow(
    /no card of an agent "codx" comes with swefarm; did you mean codex\?/,
  );
});

test('a file that cannot be read is named', () => {
  expect(() => readCard(join(folder, 'none.yaml'))).toThrow(/none\.yaml: no such file/);
  expect(() => readCard(written('card: [1'))).toThrow(/card\.yaml: .*line 1/s);
  expect(() => readCard(written('- 1'))).toThrow(/card\.yaml: the file: .*expected object/);
});

test.each<[string, object, RegExp]>([
  ['an unknown key', { comand: [] }, /comand: unknown key; did you mean command\?/],
  [
    'an unknown key of a section',
    { needs: { libc: 'none', memory: 1 } },
    /needs\.memory: unknown key; known here: libc/,
  ],
  [
    'an unknown key of an option',
    { options: { a: { default: 1, help: '', whn: {} } } },
    /options\.a\.whn: unknown key; did you mean when\?/,
  ],
  ['a wrong value', { needs: { libc: 'musl' } }, /needs\.libc: /],
  [
    'an unknown placeholder',
    { command: ['{bundel}/x'] },
    /command\[0\]: unknown placeholder \{bundel\}; did you mean \{bundle\}/,
  ],
  [
    'a task in a file',
    { files: { '{home}/a': '{task}' } },
    /files\.\{home\}\/a: \{task\} is not allowed here/,
  ],
  ['a relative path', { files: { 'a/b': '' } }, /files\.a\/b: expected a path/],
  [
    'an option with a reserved name',
    { options: { key: { default: 1, help: '' } } },
    /options\.key: \{key\} is given/,
  ],
  [
    'a value of another type',
    { options: { on: { default: true, help: '', when: { yes: {} } } } },
    /options\.on\.when\.yes: expected a value of the type of true/,
  ],
  [
    'a file of an option that is the task',
    { options: { own: { default: '', help: '', file: 'task.md' } } },
    /options\.own\.file: \{home\}\/task\.md is the task/,
  ],
  [
    'a file of an option that is a folder of the card',
    { files: { '{home}/own/a': '' }, options: { own: { default: '', help: '', file: 'own' } } },
    /options\.own\.file: \{home\}\/own is the task, a file of the card/,
  ],
  [
    'two options with one file',
    { options: { a: { default: '', help: '', file: 'own' }, b: { default: '', help: '', file: 'own' } } },
    /options\.b\.file: \{home\}\/own is/,
  ],
  [
    'two outputs of one name',
    { outputs: [CARD.outputs[0], CARD.outputs[0]] },
    /outputs\[1\]\.as: "log" is the name of an earlier output/,
  ],
])('%s is refused with its field', (_, change, message) => {
  expect(() => parseCard('card x', { ...CARD, ...change })).toThrow(message);
});

test('all problems of a card are named', () => {
  expect(() => parseCard('card x', { ...CARD, env: { A: '{x}' }, command: ['{y}'] })).toThrow(
    /card x:\n {2}command\[0\]: .*\n {2}env\.A: /,
  );
});
