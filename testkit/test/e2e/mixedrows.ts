/** A dataset of many families in one file, with the actions of the agents and the expected rewards. */
import { join } from 'node:path';
import { FAMILY_NAMES, makeFamilyInstances } from '../../src/families/instances.ts';
import { running, type ScriptInput } from '../../src/policy/script.ts';
import { commitTree, headOf, writeTree } from '../../src/repository.ts';

/** Actions of an agent. */
export const DEEDS = [
  'mends it',
  'does nothing',
  'does something else',
  'breaks it',
  'mends it wrongly',
  'edits the tests',
] as const;
type Deed = (typeof DEEDS)[number];

export type MixedInstance = {
  id: string;
  /** Name of the family in the report. */
  family: string;
  row: object;
  /** Shell commands for the actions. Without a command, the agent submits an untouched tree. */
  commands: Partial<Record<Deed, string>>;
  /** Expected rewards that differ from 1 for the fix and 0 for other actions. */
  rewards?: Partial<Record<Deed, number>>;
};

export const rewardOf = ({ rewards = {} }: MixedInstance, deed: Deed): number =>
  rewards[deed] ?? (deed === 'mends it' ? 1 : 0);

const calc = (expression: string): string =>
  `printf 'def add(a, b):\n    return ${expression}\n' >calc.py`.replaceAll('\n', '\\n');
const SOMETHING_ELSE = 'echo note >NOTES.txt';
const CALC_COMMANDS: MixedInstance['commands'] = {
  'mends it': calc('a + b'),
  'does something else': SOMETHING_ELSE,
  'breaks it': "echo 'def add(' >calc.py",
  'mends it wrongly': calc('b - a'),
  'edits the tests':
    "printf 'def test_add():\\n    pass\\ndef test_zero():\\n    pass\\n' >tests/test_calc.py",
};

/** Four checks, each with a quarter of the reward. */
const CHECKS = `import json
try:
    from calc import add
    right = [add(0, 0) == 0, add(1, 2) == 3, add(2, -2) == 0, add(-1, -1) == -2]
except SyntaxError:
    right = [False]
json.dump({"reward": sum(right) / 4, "right": sum(right)}, open("/tmp/reward.json", "w"))
`;

/** Makes a row with its own environment and plan, whose grader returns a number. */
async function scored(folder: string): Promise<MixedInstance> {
  const repository = join(folder, 'scored/testbed');
  await writeTree(repository, { 'calc.py': 'def add(a, b):\n    return a - b\n' });
  const id = 'own__scored-1';
  const row = {
    ...{ instance_id: id, repo: 'own/scored', base_commit: headOf(commitTree(repository)) },
    ...{ image: `host+dir:${join(folder, 'scored')}`, problem_statement: 'add subtracts.' },
    ...{ FAIL_TO_PASS: [], PASS_TO_PASS: [], environment: { workdir: '/testbed', activate: '' } },
    plan: {
      grader: 'own-1',
      apply: [{ name: 'git apply', argv: ['git', 'apply', '/tmp/patch.diff'] }],
      script: `cd /testbed\npython3 - <<'CHECKS'\n${CHECKS}CHECKS\n`,
      outcomes: { from: 'reward', file: '/tmp/reward.json' },
      verdict: { rule: 'reward' },
    },
  };
  const commands = { ...CALC_COMMANDS, 'mends it wrongly': calc('a + abs(b)') };
  delete commands['edits the tests'];
  // The untouched tree passes the check of add(0, 0), but an empty patch is not graded.
  const rewards = { 'mends it wrongly': 0.5, 'does something else': 0.25 };
  return { id, family: 'custom', row, commands, rewards };
}

const FAMILY_OF: Readonly<Record<string, string>> = {
  'swe-bench-live with pytest': 'swe-bench-live',
  'swe-bench-live with its own parser': 'swe-bench-live',
};

/** Makes instances of families that need no package manager, as small trees on top of the host's system. */
export async function smallInstances(folder: string): Promise<MixedInstance[]> {
  const others = ['multi-swe', 'r2e-gym as NeMo Gym posts it', 'nv-internal-1'];
  const names = FAMILY_NAMES.filter((name) => !others.includes(name));
  const made = await makeFamilyInstances(join(folder, 'trees'), undefined, names);
  const small = [...made].map(
    ([name, { id, row }]): MixedInstance => ({
      ...{ id, row, family: FAMILY_OF[name] ?? name, commands: CALC_COMMANDS },
    }),
  );
  return [...small, await scored(folder)];
}

/** Returns the actions of a group by rollout index. Each group begins with another action, so that no action is always the first. */
export const deedsOf = (deeds: readonly Deed[], group: number): Deed[] =>
  deeds.map((deed, index) => deeds[(index + group) % deeds.length] ?? deed);

/** Returns the policy's script for these instances, with one action for each rollout of a group. */
export function scriptOf(instances: readonly MixedInstance[], deeds: readonly Deed[]): ScriptInput {
  return {
    conversations: instances.map(({ id, commands }, group) => ({
      instance: id,
      variants: deedsOf(deeds, group).map((deed) => {
        const command = commands[deed];
        return running(...(command === undefined ? [] : [command]));
      }),
    })),
  };
}

/** Copies the instances under further ids, if their rows have the column instance_id. */
export function copiesOf(instances: readonly MixedInstance[], copies: number): MixedInstance[] {
  return instances.flatMap((one) => {
    if (!('instance_id' in one.row)) return [one];
    return Array.from({ length: copies }, (_, at) => {
      const id = `${one.id}-${at}`;
      return { ...one, id, row: { ...one.row, instance_id: id } };
    });
  });
}
