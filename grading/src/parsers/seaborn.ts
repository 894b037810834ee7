/** seaborn's mixture of pytest's summary and its progress lines. */
import { fields, linesOf } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

export const seaborn: Reader = (log, { dialect }) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    const failed = line.startsWith('FAILED');
    const inside = !failed && line.includes(' PASSED ');
    if (!failed && !inside && !line.startsWith('PASSED')) continue;
    const [first, second] = fields(line, 2);
    if (first === undefined || second === undefined) {
      // The older harnesses index without a check.
      if (dialect !== '5.0.2') throw new RangeError('list index out of range');
    } else if (failed) found.set(second, 'FAILED');
    else if (!inside) found.set(second, 'PASSED');
    else if (second === 'PASSED') found.set(first, 'PASSED');
  }
  return found;
};
