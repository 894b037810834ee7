/** The shipped agents resolve an instance in sandboxes without a network. Bundles: SWEFARM_TEST_AGENTS_DIR (`swefarm agents install`). */
import { findBundle, readShippedCard } from '@swefarm/agents';
import { running, type TurnInput } from '@swefarm/testkit';
import { describe, expect, test, vi } from 'vitest';
import { rollOut, useMachine } from './installedscene.ts';
import { taskOf } from './matrix/harbortasks.ts';
import { RUNTIMES } from './matrix/runtimes.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const SOLVE = 'cat answer.txt; echo 42 >answer.txt';
/** The call by which each agent runs a command. */
const CALLS = {
  codex: { name: 'exec_command', arguments: { cmd: SOLVE } },
  'claude-code': { name: 'Bash', arguments: { command: SOLVE, description: 'solve' } },
  opencode: { name: 'bash', arguments: { command: SOLVE, description: 'solve' } },
  'qwen-code': { name: 'run_shell_command', arguments: { command: SOLVE, is_background: false } },
};

/** Returns the card of an agent and the folder of bundles, or why the agent cannot run here. */
async function findAgent(name: string) {
  const dir = process.env.SWEFARM_TEST_AGENTS_DIR;
  const shipped = readShippedCard(name);
  const bundle = dir && (await findBundle(dir, shipped.bundle.name, shipped.bundle.lock));
  return dir && bundle ? { dir, shipped } : `no bundle of ${name}: set SWEFARM_TEST_AGENTS_DIR`;
}

describe.each(RUNTIMES)('on %s', (runtime) => {
  const machine = useMachine(runtime);

  test.for(Object.entries(CALLS))(
    '%s works, ends by itself and is trained on',
    async ([name, call], { skip }) => {
      const found = await findAgent(name);
      if (typeof found === 'string') return skip(found);
      const { dir, shipped } = found;
      const turns: TurnInput[] = [{ tool_calls: [call] }, { text: 'Done.' }];
      const trial = await rollOut(await machine(), { turns, shipped, flags: { agents_dir: dir } });
      await trial.attempt();
      const result = await trial.result();
      expect([result?.failure, await trial.ends()]).toEqual([null, ['done']]);
      expect(result).toMatchObject({ resolved: true, exit_status: 'submitted', turns: 2 });
      expect(result?.agent).toMatchObject({ lines: 1, requests: 2, whole: 0, masked: {} });
      expect(result?.agent?.unknown_paths).toBeUndefined();
      expect(await trial.left()).toBe(0);
    },
  );

  test.for([
    [SOLVE, 1],
    ['cat answer.txt', 0],
  ] as const)(
    'terminus-2 runs %s at a Harbor task and gets the reward %i',
    async ([command, reward], { skip }) => {
      const found = await findAgent('terminus-2');
      if (typeof found === 'string') return skip(found);
      const { dir, shipped } = found;
      const trial = await rollOut(await machine(), {
        ...{ turns: running(command), shipped, instance: taskOf(), flags: { agents_dir: dir } },
      });
      await trial.attempt();
      const result = await trial.result();
      expect([result?.failure, await trial.ends()]).toEqual([null, ['done']]);
      expect(result).toMatchObject({ outcome: 'judged', exit_status: 'submitted', reward });
      expect(result).toMatchObject({ reward_components: { reward }, facts: { trust: 'clean' } });
      expect(result?.agent).toMatchObject({ name: 'terminus-2', lines: 1, whole: 0, masked: {} });
      const { turns = [], contiguous } = (await trial.stored())?.trajectory ?? {};
      expect([contiguous, turns.length, await trial.left()]).toEqual([true, result?.turns, 0]);
      expect(turns.every(({ tokens }) => (tokens?.generation.length ?? 0) > 0)).toBe(true);
    },
  );
});
