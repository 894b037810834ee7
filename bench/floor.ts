/** Measures complete rollouts with the engine alone: the same containers and commands, without the farm. */
import { openBareShell } from './bareshell.ts';
import { COMMANDS } from './commands.ts';
import { execOnce, openBash, removeBare, startBare } from './engine.ts';

/**
 * Runs `count` rollouts, `parallel` at a time: container, bare shell, commands, a second container that runs `evalScript` if
 * it is given, and removal. Returns the seconds for all.
 */
export async function runFloor(
  image: string,
  count: number,
  parallel: number,
  evalScript: string | null,
): Promise<number> {
  let left = count;
  const from = performance.now();
  const lane = async (): Promise<void> => {
    while (left-- > 0) await oneRollout(image, evalScript);
  };
  await Promise.all(Array.from({ length: parallel }, lane));
  return (performance.now() - from) / 1000;
}

async function oneRollout(image: string, evalScript: string | null): Promise<void> {
  const container = await startBare(image);
  try {
    const shell = await openBareShell(await openBash(container));
    for (const command of COMMANDS) await shell.run(command);
    shell.close();
    if (evalScript !== null) await evaluateBare(image, evalScript);
  } finally {
    await removeBare(container);
  }
}

async function evaluateBare(image: string, evalScript: string): Promise<void> {
  const container = await startBare(image);
  try {
    const { output } = await execOnce(container, ['/bin/bash', '-c', evalScript]);
    if (!output.includes('tests/run.py::test_times'))
      throw new Error(`the tests did not run: ${output.slice(-300)}`);
  } finally {
    await removeBare(container);
  }
}
