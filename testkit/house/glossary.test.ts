import { basename } from 'node:path';
import { expect, test } from 'vitest';
import { readRepository } from './tree.ts';
import { wordsOf } from './words.ts';

/** Metaphors, and what to write in their place. */
const INSTEAD: readonly [words: string, instead: string][] = [
  ['say says saying said', 'print, report, describe; for a noun: answer, output, message'],
  ['hear hears heard', 'receive, read; for a noun: reply'],
  [
    'place places',
    'what is there: folder, position, index, location, endpoint; to place: write, add, assign',
  ],
  ['hold holds holding held', 'contain, have, acquire, renew, lock, reserve'],
  ['keep keeps keeping keeper kept', 'store, retain, leave, select, spare'],
  ['settle settles settled', 'commit, end, resolve'],
  ['trap traps', 'a test made to fail; a problem'],
  ['sick', 'unhealthy'],
  ['wish wishes', 'setting, option, mode, request'],
];
const instead = new Map(INSTEAD.flatMap(([words, text]) => words.split(' ').map((word) => [word, text])));

/** Names of stored formats, of configuration, and of libraries. */
const NAMES: ReadonlySet<string> = new Set([
  // Keys of the artifact, of the journal and of a session's state.
  ...['kept', 'said'],
  // `gateway_max_hold_seconds` and `gateway_group_hold_seconds`, and their fields of a caller.
  ...['gateway_max_hold_seconds', 'gateway_group_hold_seconds', 'max_hold_seconds', 'maxHoldSeconds'],
  // `--keep` of `swefarm dataset dedup` and `merge`.
  ...['keep', 'KEEP'],
  // Placement: which node runs a rollout.
  ...['placesByImage', 'placesHere'],
  // Options of undici, of Node's HTTP server, and of SWR.
  ...['keepAlive', 'keepAliveTimeout', 'keepAliveInitialDelay', 'keepPreviousData'],
]);

/** Phrases in which a word has its plain meaning, and texts that other programs read. */
const PHRASES = /in (?:the )?place of|--keep\b|keep-alive|says? nothing more|trap '|\bsaid=|\$said\b/g;

const product = readRepository().filter(({ isTest, path }) => !isTest && !path.endsWith('.json'));

test('names of product code are free of metaphors', () => {
  const found = product.flatMap(({ path, written }) =>
    written
      .filter(({ kind, text }) => kind === 'name' && !NAMES.has(text.replace(/^#/, '')))
      .flatMap(({ line, text }) => problems(`${path}:${line}`, text)),
  );
  expect(found).toEqual([]);
});

test('names of files are free of metaphors', () => {
  expect(product.flatMap(({ path }) => problems(path, basename(path)))).toEqual([]);
});

test('logs, errors and help are free of metaphors', () => {
  const found = product.flatMap(({ path, written }) =>
    written
      .filter(({ kind }) => kind === 'text')
      .flatMap(({ line, text }) => problems(`${path}:${line}`, text.replace(PHRASES, ''), /\W+/)),
  );
  expect(found).toEqual([]);
});

/** @param between separator of the words of a text; default: words are split as in a name */
function problems(where: string, text: string, between?: RegExp): string[] {
  const words = between ? text.toLowerCase().split(between) : wordsOf(text);
  return words.flatMap((word) => {
    const better = instead.get(word);
    return better ? [`${where}: "${word}" in ${text.slice(0, 100)}: write ${better}`] : [];
  });
}
