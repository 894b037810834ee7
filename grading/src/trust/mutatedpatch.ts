/**
 * Changes the tests of a test patch so that they must fail. Each failure has the name, the file and the form of an honest failure. Each
 * assertion becomes its opposite; a test without an assertion gets a failing statement.
 */
import type { Instance } from '@swefarm/shared';
import { type Language, languageOf, type Random, withOtherValue } from './mutations.ts';

export type MutatedPatch = {
  patch: string;
  /** Tests of FAIL_TO_PASS and PASS_TO_PASS that must fail. */
  ids: string[];
};

/** Changes of assertions: to their opposites, or to another expected value. */
export type Change = 'opposites' | 'values';

/** Line of a test file after the test patch. `at` is the index of the line in the patch. */
type Line = { at: number; kind: ' ' | '+'; text: string };
type Found = { ids: string[]; gains: boolean; edits: Map<number, string[]> };

/** Maximum number of changed tests outside of FAIL_TO_PASS. Code that counts failures could recognise many changed tests. */
const MOST_OTHERS = 1;
const HUNK = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;

/** Returns null if no test of FAIL_TO_PASS or PASS_TO_PASS can change. For `values`, a test must assert equality with a value. */
export function failTests(
  instance: Pick<Instance, 'test_patch' | 'FAIL_TO_PASS' | 'PASS_TO_PASS'>,
  random: Random,
  change: Change = 'opposites',
): MutatedPatch | null {
  const lines = instance.test_patch.split('\n');
  const found = [...hunksOf(lines)].flatMap((hunk) => testsIn(hunk, instance, { random, change }));
  const gains = found.filter((test) => test.gains);
  const others = found.filter((test) => !test.gains);
  const from = others.length > 0 ? random(others.length) : 0;
  const chosen = [...gains, ...others.slice(from, from + MOST_OTHERS)];
  if (chosen.length === 0) return null;
  const edits = new Map(chosen.flatMap((test) => [...test.edits]));
  return { patch: edited(lines, edits), ids: [...new Set(chosen.flatMap((test) => test.ids))] };
}

type Hunk = { language: Language; lines: Line[]; section: string };

function* hunksOf(lines: readonly string[]): Generator<Hunk> {
  let language: Language | null = null;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const [, path] = /^\+\+\+ b\/(.*)$/.exec(line) ?? [];
    if (path !== undefined) language = languageOf(path);
    const [head, , , section] = HUNK.exec(line) ?? [];
    if (head === undefined || language === null) continue;
    const body: Line[] = [];
    for (; /^[ +\-\\]/.test(lines[at + 1] ?? '') || lines[at + 1] === ''; at++) {
      const next = lines[at + 1] ?? '';
      if (next.startsWith('--- ') && (lines[at + 2] ?? '').startsWith('+++ ')) break;
      const kind = next[0] === '+' ? '+' : next === '' || next[0] === ' ' ? ' ' : null;
      if (kind) body.push({ at: at + 1, kind, text: next.slice(1) });
    }
    yield { language, lines: body, section: section ?? '' };
  }
}

const indentOf = (text: string): string => /^\s*/.exec(text)?.[0] ?? '';

function testsIn(
  { language, lines, section }: Hunk,
  instance: Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'>,
  how: { random: Random; change: Change },
): Found[] {
  const starts = lines.flatMap((line, index) => {
    const ids = namedBy(line.text, language, instance);
    return ids ? [{ index, ids, head: line.text }] : [];
  });
  const above = namedBy(section, language, instance);
  if (above) starts.unshift({ index: -1, ids: above, head: section });
  return starts.flatMap(({ index, ids, head }, nth) => {
    const end = starts[nth + 1]?.index ?? lines.length;
    const edits = editsOf(head, lines.slice(index + 1, end), {
      ...how,
      language,
      isBelow: index < 0,
      first: lines[index],
    });
    return edits.size > 0 ? [{ ...ids, edits }] : [];
  });
}

function namedBy(
  text: string,
  language: Language,
  { FAIL_TO_PASS, PASS_TO_PASS }: Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'>,
): Pick<Found, 'ids' | 'gains'> | null {
  const name = language.head
    .exec(text)
    ?.slice(1)
    .find((group) => group !== undefined);
  if (name === undefined) return null;
  const named = (id: string): boolean => mentions(id, name);
  const gains = FAIL_TO_PASS.filter(named);
  const ids = [...gains, ...PASS_TO_PASS.filter(named)];
  return ids.length > 0 ? { ids, gains: gains.length > 0 } : null;
}

/** Whether the id contains the name as a whole word. */
function mentions(id: string, name: string): boolean {
  for (let at = id.indexOf(name); at >= 0; at = id.indexOf(name, at + 1)) {
    if (!/\w/.test(id[at - 1] ?? '') && !/\w/.test(id[at + name.length] ?? '')) return true;
  }
  return false;
}

type Within = {
  language: Language;
  random: Random;
  change: Change;
  isBelow: boolean;
  first: Line | undefined;
};

/** Returns the replacements of lines, by index in the patch. If a test begins above the hunk, only assertions can change. */
function editsOf(
  head: string,
  rest: readonly Line[],
  { language, random, change, isBelow, first }: Within,
): Map<number, string[]> {
  const edits = new Map<number, string[]>();
  const open =
    isBelow || language.opens.test(head)
      ? 0
      : 1 + rest.slice(0, 20).findIndex(({ text }) => language.opens.test(text));
  if (!isBelow && open === 0 && !language.opens.test(head)) return edits;
  const body = bodyOf(head, rest.slice(open));
  const base = body.find(({ text }) => text.trim() !== '');
  if (!base) return edits;
  for (const { at, kind, text } of body) {
    if (indentOf(text) !== indentOf(base.text)) continue;
    const inverted = change === 'values' ? withOtherValue(text, random) : language.invert(text);
    if (inverted !== null && inverted !== text) edits.set(at, replaced(kind, text, inverted));
  }
  if (edits.size > 0 || isBelow || change === 'values') return edits;
  const opener = open === 0 ? first : rest[open - 1];
  const after = afterDocstring(body, base) ?? opener;
  if (after)
    edits.set(after.at, [
      `${after.kind}${after.text}`,
      `+${indentOf(base.text)}${language.fails(head, random)}`,
    ]);
  return edits;
}

/** Returns the lines before the first line that is not indented deeper than the head. */
function bodyOf(head: string, rest: readonly Line[]): readonly Line[] {
  const depth = indentOf(head).length;
  const end = rest.findIndex(({ text }) => text.trim() !== '' && indentOf(text).length <= depth);
  return end < 0 ? rest : rest.slice(0, end);
}

/** Returns the last line of a docstring, or null. Some runners print a docstring as the name, so it must remain first. */
function afterDocstring(body: readonly Line[], base: Line): Line | null {
  const [, quote] = /^\s*[rRuU]?("""|''')/.exec(base.text) ?? [];
  if (quote === undefined) return null;
  if (base.text.split(quote).length > 2) return base;
  const from = body.indexOf(base);
  return body.slice(from + 1).find(({ text }) => text.includes(quote)) ?? base;
}

const replaced = (kind: Line['kind'], text: string, by: string): string[] =>
  kind === '+' ? [`+${by}`] : [`-${text}`, `+${by}`];

/** Returns the patch with the edits and with updated line counts of the hunks. */
function edited(lines: readonly string[], edits: ReadonlyMap<number, string[]>): string {
  const result: string[] = [];
  let header = -1;
  for (const [at, line] of lines.entries()) {
    if (HUNK.test(line)) header = result.length;
    const by = edits.get(at);
    result.push(...(by ?? [line]));
    const more = by ? by.filter((one) => !one.startsWith('-')).length - 1 : 0;
    if (more > 0 && header >= 0) result[header] = grown(result[header] ?? '', more);
  }
  return result.join('\n');
}

const grown = (header: string, more: number): string =>
  header.replace(
    / \+(\d+)(?:,(\d+))? @@/,
    (_all, start, count) => ` +${start},${Number(count ?? 1) + more} @@`,
  );
