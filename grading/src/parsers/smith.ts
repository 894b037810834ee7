/** SWE-smith's default: pytest's verbose progress lines, `name STATUS …`. */
import { fields, isSpace, linesOf } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

const WORDS = ['FAILED', 'PASSED', 'SKIPPED', 'ERROR', 'XFAIL'];

export const smithPytest: Reader = (log) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    if (isSpace(line[0])) continue;
    const [name, next] = fields(line, 2);
    const word = WORDS.find((candidate) => next?.startsWith(candidate));
    if (name !== undefined && word !== undefined) found.set(name, word);
  }
  return found;
};
