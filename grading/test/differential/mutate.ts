/** Damages logs by a seed, as hostile output, crashed runners and interleaved streams do. */

/** A small seeded generator of numbers in [0, 1). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Tokens of the parsers, and characters that are blanks in some languages only. */
const TOKENS = [
  'PASSED', 'FAILED', 'SKIPPED', 'ERROR', 'XFAIL', 'PASSED ', 'FAILED ', ' PASSED', ' FAILED', ' - ', ' ... ok',
  ' ... ', ' ... FAIL', ' ... ERROR', ' ... skipped', 'FAIL:', 'ERROR:', 'ok', ' ok', ' E', ' F', '[OK]', '[FAIL]', 'test_',
  '.py:', '__ ', ' __', '[', ']', '(', ')', '[/', '//', '*', '[1]', '[12m', '\u001b[31m', '\u0000', '\u0007', '\t', '\u00a0',
  '\u2003', '\u0085', '\u001c', '\ufeff', '\u2028', '✓ ', '✕ ', '✔ ', '✘ ', '○ ', '✖ ', '(3 ms)', ' (3ms)', ' 12ms', ' [skipped]',
  '--- PASS: ', 'test ', '[PASSED] ', 'ok 1 ', 'not ok 2 ', 'SUMMARY:', 'Starting browser', '-Dtest=', 'BUILD SUCCESS', 'BUILD FAILURE',
  '[junit] [PASS] ', ' - passed', ' - failed', ' .....F', '. x = .', ': .', ': E', '[ OK ] ', '[ FAILED ] ', '<SubCase name="x">',
  '</SubCase>', 'success="true"', 'Chrome 9 (L) x FAILED', '1) ', '  1) ', 'Error', 'Error:', ':', '{', '}', '12 passing', '   ', ' ', '=',
  '>>>>> Start Test Output', '>>>>> End Test Output', '>>>>> Test Exit Code: 1', '>>>>> Tests Errored', '--version is equivalent to version',
  ' ... Internal Server Error: /x/', ' ... System check identified no issues (0 silenced)', ' silenced).',
  ' ... Testing against Django installed in ', 'MouseButton.LEFT', 'Applied patch x cleanly.', '٣', 'FAILED [ 5%]',
]; // biome-ignore format: a table of words

type Pick = <T>(items: readonly T[]) => T;

const EDITS: ((lines: string[], at: number, pick: Pick, next: () => number) => void)[] = [
  (lines, at) => lines.splice(at, 1),
  (lines, at) => lines.splice(at, 0, lines[at] ?? ''),
  (lines, at) => lines.splice(at, 0, ''),
  (lines, at, pick) => lines.splice(at, 0, pick(TOKENS)),
  (lines, at) => lines.splice(at, 2, `${lines[at] ?? ''}${lines[at + 1] ?? ''}`),
  (lines, at, _pick, next) => {
    const line = lines[at] ?? '';
    const cut = Math.floor(next() * (line.length + 1));
    lines.splice(at, 1, line.slice(0, cut), line.slice(cut));
  },
  (lines, at, _pick, next) => {
    const line = lines[at] ?? '';
    lines[at] = line.slice(0, Math.floor(next() * (line.length + 1)));
  },
  (lines, at, pick, next) => {
    const line = lines[at] ?? '';
    const position = Math.floor(next() * (line.length + 1));
    lines[at] = line.slice(0, position) + pick(TOKENS) + line.slice(position);
  },
  (lines, at, pick) => {
    lines[at] = pick(TOKENS) + (lines[at] ?? '') + pick(TOKENS);
  },
  (lines, at, pick) => {
    const words = (lines[at] ?? '').split(' ');
    words[Math.min(1, words.length - 1)] = pick(TOKENS);
    lines[at] = words.join(' ');
  },
  (lines, at, pick) => {
    lines[at] = (lines[at] ?? '').replaceAll(' ', pick(['\t', '  ', '\u00a0', '\u2003', '']));
  },
  (lines, at, pick) => {
    const other = Math.floor(pick([0, 0.3, 0.6, 0.9]) * lines.length);
    [lines[at], lines[other]] = [lines[other] ?? '', lines[at] ?? ''];
  },
];

/** Returns at most 400 successive lines of the log, damaged in up to twelve places. */
export function mutate(log: string, next: () => number): string {
  const pick: Pick = (items) => items[Math.floor(next() * items.length)] as (typeof items)[number];
  const lines = log.split('\n');
  const from = Math.floor(next() * Math.max(1, lines.length - 400));
  const part = lines.slice(from, from + 400);
  const count = 1 + Math.floor(next() * 12);
  for (let edit = 0; edit < count; edit++) pick(EDITS)(part, Math.floor(next() * part.length), pick, next);
  return part.join('\n');
}
