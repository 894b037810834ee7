/** Reads `cargo test`: `test path::name ... ok`. */
import { fields } from '../text/pythontext.ts';
import { byStrippedLine } from './reader.ts';

export const cargo = byStrippedLine((line, found) => {
  if (!line.startsWith('test')) return;
  const [word, name, dots, outcome, more] = fields(line, 5);
  if (word !== 'test' || name === undefined || dots !== '...' || more !== undefined) return;
  if (outcome === 'ok') found.set(name, 'PASSED');
  else if (outcome === 'FAILED') found.set(name, 'FAILED');
});
