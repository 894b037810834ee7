/** Reads Node's runners (mocha, TAP, vitest, node:test) as SWE-rebench V2 does. */
import { isSpace, S, strip, strippedLines } from '../text/pythontext.ts';
import { dropTime } from './endings.ts';
import { setUnlessFailed } from './ranks.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';
import { NameBudget } from './suites.ts';

const NUMBERED = new RegExp(`^(?:\\[W\\]${S}*)?\\p{Nd}+\\)${S}+(.+)$`, 'u');

/** Reads `✔ name`, `- name` and `1) name:`. If `colon` is true, a numbered failure must end in a colon or begin with `[W]`. */
const mochaLike = (colon: boolean): Reader =>
  byStrippedLine((line, found) => {
    const marked = isSpace(line[1]) ? strip(line.slice(1)) : '';
    const numbered = NUMBERED.exec(line)?.[1];
    if (marked !== '' && line[0] === '✔') setUnlessFailed(found, strip(dropTime(marked)), 'PASSED');
    else if (marked !== '' && line[0] === '-') found.set(strip(dropTime(marked)), 'SKIPPED');
    else if (numbered !== undefined) {
      const bare = numbered.endsWith(':') ? numbered.slice(0, -1) : numbered;
      if (!colon || bare !== numbered || line.startsWith('[W]')) found.set(strip(dropTime(bare)), 'FAILED');
    }
  });

export const mochaWithColon = mochaLike(true);
export const mochaNumbered = mochaLike(false);

const TAP = new RegExp(`^(not ok|ok)${S}+\\p{Nd}+${S}+-${S}+(.+)$`, 'u');

/** Reads TAP with sub-tests in braces. Nested names are joined by ` :: `. */
export const nestedTap: Reader = (log) => {
  const found = statuses();
  /** Prefix of the names inside each open brace, outermost first. */
  const contexts: string[] = [];
  const work = new NameBudget();
  for (const line of strippedLines(log)) {
    if (line !== '' && /^\}+$/.test(line)) {
      contexts.length = Math.max(contexts.length - line.length, 0);
      continue;
    }
    const opens = line.endsWith('{');
    const match = TAP.exec(opens ? strip(line.slice(0, -1)) : line);
    if (!match) continue;
    const name = strip(dropTime(withoutComment(match[2] ?? '')));
    const full = (contexts.at(-1) ?? '') + name;
    work.add([full]);
    if (/# (?:skip|todo)/.test(line)) found.set(full, 'SKIPPED');
    else setUnlessFailed(found, full, match[1] === 'ok' ? 'PASSED' : 'FAILED');
    if (opens) contexts.push(`${full} :: `);
  }
  return found;
};

/** Returns the text before the first blank that a `#` follows. */
function withoutComment(name: string): string {
  for (let at = name.indexOf('#', 1); at > 0; at = name.indexOf('#', at + 1)) {
    if (isSpace(name[at - 1]) && strip(name.slice(0, at)) !== '') return strip(name.slice(0, at));
  }
  return name;
}

const MARKS: Record<string, string> = {
  '✔': 'PASSED',
  '✓': 'PASSED',
  '✘': 'FAILED',
  '✖': 'FAILED',
  '×': 'FAILED',
  '○': 'SKIPPED',
  '◌': 'SKIPPED',
  '◦': 'SKIPPED',
  '⚪': 'SKIPPED',
};
const TAG = new RegExp(`^\\[[^\\]]*\\]:${S}*`);
const SKIP_TAGS = ['(skipped)', '[skipped]', '[skip]', '[pending]', '[todo]'];

/** Reads a mark and a name, as any runner of this file prints them. */
export const anyMarks = byStrippedLine((line, found) => {
  const status = MARKS[line[0] ?? ''];
  if (status !== undefined) {
    const name = strip(dropTime(strip(line.slice(1)).replace(TAG, '')));
    if (name !== '') setUnlessFailed(found, name, status);
    return;
  }
  const tag = SKIP_TAGS.find((candidate) => line.includes(candidate));
  const name = tag === undefined ? '' : strip(dropTime(line.replace(tag, '')));
  if (name !== '') found.set(name, 'SKIPPED');
});

const NPX_TIME = /^\p{Nd}+(?:ms)?$/u;

/** Reads `✔ name (12ms)` and `1) name (…)`. */
export const npx = byStrippedLine((line, found) => {
  const failed = /^\p{Nd}+\)/u.exec(line)?.[0];
  if (line[0] === '✔' && isSpace(line[1])) {
    const name = strip(line.slice(1));
    if (name !== '') found.set(cutParen(name, NPX_TIME), 'PASSED');
  } else if (failed !== undefined && isSpace(line[failed.length])) {
    const name = strip(line.slice(failed.length));
    if (name !== '') found.set(cutParen(name, /^[^)]*$/), 'FAILED');
  }
});

/** Removes a final `(text)` and the blanks before it if `inside` matches `text` and a name remains. */
function cutParen(name: string, inside: RegExp): string {
  const open = name.endsWith(')') ? name.lastIndexOf('(') : -1;
  if (open <= 0 || !isSpace(name[open - 1]) || !inside.test(name.slice(open + 1, -1))) return name;
  return strip(name.slice(0, open)) || name;
}
