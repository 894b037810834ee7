/** Reads ExUnit's trace as SWE-rebench V2 does. */
import { S, strip, stripEnd } from '../text/pythontext.ts';
import { setUnlessFailed } from './ranks.ts';
import { byStrippedLine } from './reader.ts';

const FAILED = new RegExp(`^\\p{Nd}+\\)${S}+test${S}+(.+)$`, 'u');
const LINE = /^\[L#\p{Nd}+\]$/u;
const TIME = /^\([\p{Nd}.]+ms\)$/u;

/** Reads `* test name (1.2ms) [L#5]` and, for a failed test, `1) test name (Module)`. */
export const exunit = byStrippedLine((line, found) => {
  const failed = FAILED.exec(line)?.[1];
  if (failed !== undefined) {
    const open = failed.endsWith(')') ? failed.lastIndexOf('(') : -1;
    const name = open > 0 ? stripEnd(failed.slice(0, open)) : '';
    if (name !== '') found.set(name, 'FAILED');
  } else if (line.startsWith('* test ')) readTrace(strip(line.slice('* test '.length)), found);
});

function readTrace(text: string, found: Map<string, string>): void {
  const bracket = text.lastIndexOf('[');
  if (bracket <= 0 || !LINE.test(text.slice(bracket))) return;
  const head = stripEnd(text.slice(0, bracket));
  const open = head.endsWith(')') ? head.lastIndexOf('(') : -1;
  const inside = open > 0 ? head.slice(open) : '';
  const name = inside === '(skipped)' || TIME.test(inside) ? stripEnd(head.slice(0, open)) : head;
  if (name !== '') setUnlessFailed(found, name, inside === '(skipped)' ? 'SKIPPED' : 'PASSED');
}
