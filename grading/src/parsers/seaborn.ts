/** Reads seaborn's logs, in which pytest's summary is mixed with progress lines. */
import { fields } from '../text/pythontext.ts';
import { byLine } from './reader.ts';

export const seaborn = byLine((line, found, { dialect }) => {
  const failed = line.startsWith('FAILED');
  const inside = !failed && line.includes(' PASSED ');
  if (!failed && !inside && !line.startsWith('PASSED')) return;
  const [first, second] = fields(line, 2);
  if (first === undefined || second === undefined) {
    // Older harnesses take the second field without a check, which raises an exception.
    if (dialect !== '5.0.2') throw new RangeError('list index out of range');
  } else if (failed) found.set(second, 'FAILED');
  else if (!inside) found.set(second, 'PASSED');
  else if (second === 'PASSED') found.set(first, 'PASSED');
});
