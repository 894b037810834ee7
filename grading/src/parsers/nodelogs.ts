/** Reads nested TAP, and marks of any Node runner, as SWE-rebench V2 does. */
import { py } from '../text/pattern.ts';
import { strip, strippedLines } from '../text/pythontext.ts';
import { dropTime } from './endings.ts';
import { byStrippedLine, reading, STATUS, setUnlessFailed } from './reader.ts';
import { NameBudget } from './suites.ts';

const TAP = py`^(not ok|ok)\s+\d+\s+-\s+(.+)$`;
/** Matches the name before the first comment. */
const BEFORE_COMMENT = py`^(.*?\S)\s+#`;

/** Reads TAP with sub-tests in braces. Nested names are joined by ` :: `. */
export const nestedTap = reading((log, found) => {
  /** Prefix of the names inside each open brace, outermost first. */
  const contexts: string[] = [];
  const work = new NameBudget();
  for (const line of strippedLines(log)) {
    if (/^\}+$/.test(line)) {
      contexts.length = Math.max(contexts.length - line.length, 0);
      continue;
    }
    const opens = line.endsWith('{');
    const [, word, text = ''] = TAP.exec(opens ? strip(line.slice(0, -1)) : line) ?? [];
    if (word === undefined) continue;
    const name = strip(dropTime(BEFORE_COMMENT.exec(text)?.[1] ?? text));
    const full = (contexts.at(-1) ?? '') + name;
    work.add([full]);
    if (/# (?:skip|todo)/.test(line)) found.set(full, 'SKIPPED');
    else setUnlessFailed(found, full, STATUS[word] ?? '');
    if (opens) contexts.push(`${full} :: `);
  }
});

const MARKED = py`^([✔✓✘✖×○◌◦⚪])\s*(?:\[[^\]]*\]:\s*)?(.*)`;
const SKIP_TAGS = ['(skipped)', '[skipped]', '[skip]', '[pending]', '[todo]'];

/** Reads a mark and a name, as any runner prints them. */
export const anyMarks = byStrippedLine((line, found) => {
  const [, mark, text = ''] = MARKED.exec(line) ?? [];
  const tag = SKIP_TAGS.find((candidate) => line.includes(candidate));
  if (mark === undefined && tag === undefined) return;
  const name = strip(dropTime(mark === undefined ? line.replace(tag ?? '', '') : text));
  if (name !== '') setUnlessFailed(found, name, STATUS[mark ?? 'skip'] ?? '');
});
