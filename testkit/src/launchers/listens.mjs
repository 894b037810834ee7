// Loaded into a command before its own code: writes a line to stderr once the command handles SIGTERM.
import { writeSync } from 'node:fs';

const tell = (event) => {
  if (event !== 'SIGTERM') return;
  process.off('newListener', tell);
  // Node reports a listener before it is added.
  process.nextTick(() => writeSync(2, 'SIGTERM is handled\n'));
};
process.on('newListener', tell);
