/** Guesses why a log was unreadable, as swebench 5.0.2 does. The guess never changes a verdict. */

export type InfraGuess = { reason: string; tier: 'environment' | 'ambiguous' };

const SIGNATURES: [reason: string, tier: InfraGuess['tier'], text: RegExp][] = [
  ['browser_launch_failed', 'environment', /Failed to launch|Failed to connect to the bus/],
  ['display_unavailable', 'environment', /cannot open display|Missing X server|unable to open X display/],
  ['out_of_memory', 'environment', /Cannot allocate memory|OutOfMemoryError|(?:^|\n)Killed(?=\n|$)/],
  ['container_unavailable', 'environment', /Error response from daemon|Cannot connect to the Docker daemon/],
  ['network_unreachable', 'environment', /Could not resolve host|Temporary failure in name resolution/],
  ['missing_module', 'ambiguous', /Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError/],
  ['no_tests_collected', 'ambiguous', /no tests ran|collected 0 items/],
  ['tests_timed_out', 'ambiguous', /Timeout error: \d+ seconds exceeded/],
];

export function guessInfra(text: string): InfraGuess | null {
  const [reason, tier] = SIGNATURES.find(([, , pattern]) => pattern.test(text)) ?? [];
  return reason === undefined || tier === undefined ? null : { reason, tier };
}
