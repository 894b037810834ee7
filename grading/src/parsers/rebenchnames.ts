/** Removes times from names of tests, as SWE-rebench V2 (c71902a) does for both the expected and the found names. */
import { isSpace, S, strip, stripEnd } from '../text/pythontext.ts';
import { dropBracketedTime } from './endings.ts';

const AFTER_IN = new RegExp(`^in${S}+\\p{Nd}+(?:\\.\\p{Nd}+)?${S}+(?:msec|sec)(?![\\p{L}\\p{N}_])`, 'iu');

/** Removes `[12 ms]` at the end, each ` in 1.5 sec`, then `(12 ms)` at the end. */
export function withoutTimes(name: string): string {
  return strip(dropBracketedTime(withoutDurations(dropBracketedTime(name, '[', ']')), '(', ')'));
}

function withoutDurations(name: string): string {
  let bare = '';
  let from = 0;
  for (let at = nextIn(name, 0); at >= 0; at = nextIn(name, at + 1)) {
    // No duration has more than 128 characters.
    const match = at > from && isSpace(name[at - 1]) ? AFTER_IN.exec(name.slice(at, at + 128)) : null;
    if (!match) continue;
    bare += stripEnd(name.slice(from, at));
    from = at + match[0].length;
  }
  return bare + name.slice(from);
}

function nextIn(name: string, from: number): number {
  for (let at = from; at < name.length - 1; at++) {
    if ((name[at] === 'i' || name[at] === 'I') && (name[at + 1] === 'n' || name[at + 1] === 'N')) return at;
  }
  return -1;
}
