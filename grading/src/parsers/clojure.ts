/** Reads `lein test` as SWE-rebench V2 does: a namespace passes unless a failure follows the name of the namespace. */
import { fields, linesOf } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

export const lein: Reader = (log) => {
  const found = statuses();
  let current: string | null = null;
  for (const line of linesOf(log)) {
    const [first, second, ...names] = line.startsWith('lein test') ? fields(line) : [];
    if (first === 'lein' && second === 'test' && names[0] !== ':only') {
      for (const name of names) {
        if (!found.has(name)) found.set(name, 'PASSED');
        current = name;
      }
    } else if (current !== null && line.startsWith('FAIL in')) found.set(current, 'FAILED');
    else if (current !== null && line.startsWith('ERROR in')) found.set(current, 'ERROR');
  }
  return found;
};
