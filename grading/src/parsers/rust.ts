/** `cargo test`: `test path::name ... ok`. */
import { fields, linesOf, strip } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

export const cargo: Reader = (log) => {
  const found = statuses();
  for (const raw of linesOf(log)) {
    const line = strip(raw);
    if (!line.startsWith('test')) continue;
    const [word, name, dots, outcome, more] = fields(line, 5);
    if (word !== 'test' || name === undefined || dots !== '...' || more !== undefined) continue;
    if (outcome === 'ok') found.set(name, 'PASSED');
    else if (outcome === 'FAILED') found.set(name, 'FAILED');
  }
  return found;
};
