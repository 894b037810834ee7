/** Guesses why a log was unreadable, as 5.0.2 does: a hint beside the verdict, never part of it. */

export type InfraGuess = { reason: string; tier: 'environment' | 'ambiguous' };

const SIGNATURES: { reason: string; tier: InfraGuess['tier']; text: RegExp }[] = [
  {
    reason: 'browser_launch_failed',
    tier: 'environment',
    text: /Failed to launch|Failed to connect to the bus/,
  },
  {
    reason: 'display_unavailable',
    tier: 'environment',
    text: /cannot open display|Missing X server|unable to open X display/,
  },
  {
    reason: 'out_of_memory',
    tier: 'environment',
    text: /Cannot allocate memory|OutOfMemoryError|(?:^|\n)Killed(?=\n|$)/,
  },
  {
    reason: 'container_unavailable',
    tier: 'environment',
    text: /Error response from daemon|Cannot connect to the Docker daemon/,
  },
  {
    reason: 'network_unreachable',
    tier: 'environment',
    text: /Could not resolve host|Temporary failure in name resolution/,
  },
  {
    reason: 'missing_module',
    tier: 'ambiguous',
    text: /Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError/,
  },
  { reason: 'no_tests_collected', tier: 'ambiguous', text: /no tests ran|collected 0 items/ },
  { reason: 'tests_timed_out', tier: 'ambiguous', text: /Timeout error: \d+ seconds exceeded/ },
];

/** The first signature, in list order, that the text contains; null when it contains none. */
export function guessInfra(text: string): InfraGuess | null {
  const hit = SIGNATURES.find((signature) => signature.text.test(text));
  return hit ? { reason: hit.reason, tier: hit.tier } : null;
}
