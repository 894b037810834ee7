// Prints this machine's Debian mirrors as lines for a bare root's sources.list; with `--mirror` only the address for the suite.
// usage: sources.ts SUITE [--mirror]
import { configuredMirror } from '../../src/examples/debian.ts';

const [suite = 'bookworm', only] = process.argv.slice(2);
const suites = only === '--mirror' ? [suite] : [suite, `${suite}-updates`, `${suite}-security`];
for (const one of suites) {
  const from = await configuredMirror('/etc/apt', one);
  if (from !== null) console.log(only === '--mirror' ? from : `deb ${from} ${one} main`);
}
