/** The answers of the scripted policy in each rollout, and the verdict and reward that they give without failures. */
import type { ScriptInput } from '../src/policy/script.ts';

type Turns = ScriptInput['conversations'][number]['variants'][number];

export type Earned = { reward: number; resolved: boolean; turns: number };
export type Act = {
  name: string;
  turns: Turns;
  earns: Earned;
  /** The fault that the model's commands cause. */
  fault: 'out_of_memory' | 'fork_bomb' | 'output_flood' | null;
};

/** Limits of a sandbox of the chaos farm, which some acts exceed. */
export const SANDBOX = { memory: '256m', pids: 96 } as const;

const LOOK: Turns = [
  { command: 'ls' },
  { command: 'cat calc/ops.py | head -5' },
  { command: 'git status --short' },
];
const FIX: Turns = [{ command: "sed -i '0,/return a - b/s//return a + b/' calc/ops.py" }, { submit: true }];
const WRONG: Turns = [
  { command: "sed -i '0,/return a - b/s//return a * b * 2/' calc/ops.py" },
  { submit: true },
];

const OUT_OF_MEMORY = 'python3 -c "b = [b\'x\' * (1 << 26) for _ in range(64)]"';
/** Forks until fork fails. The parent waits for its children, which end after two seconds. */
const FORK_BOMB = [
  "python3 - <<'END'",
  'import os, time',
  'children = []',
  'try:',
  '    while len(children) < 4000:',
  '        child = os.fork()',
  '        if child == 0:',
  '            time.sleep(2)',
  '            os._exit(0)',
  '        children.append(child)',
  'except OSError:',
  '    pass',
  'for child in children:',
  '    os.waitpid(child, 0)',
  'END',
].join('\n');
const OUTPUT_FLOOD = 'yes "a line that nobody wants to read" | head -c 200000000';

function act(
  name: string,
  turns: Turns,
  earned: Pick<Earned, 'reward' | 'resolved'>,
  fault: Act['fault'] = null,
): Act {
  return { name, turns, earns: { ...earned, turns: turns.length }, fault };
}
const SOLVED = { reward: 1, resolved: true };
const UNSOLVED = { reward: 0, resolved: false };

const FIXES = act('fixes', [...LOOK, ...FIX], SOLVED);
const ERRS = act('errs', [...LOOK, ...WRONG], UNSOLVED);

/** Acts of the rollouts of a group, in rotation by their index. */
export const ACTS: readonly Act[] = [
  FIXES,
  ERRS,
  act('fixes late', [...LOOK, ...LOOK, ...FIX], SOLVED),
  act(
    'runs out of memory, then fixes',
    [...LOOK, { command: OUT_OF_MEMORY }, ...FIX],
    SOLVED,
    'out_of_memory',
  ),
  act('does nothing', [...LOOK, { submit: true }], UNSOLVED),
  act('bombs, then fixes', [...LOOK, { command: FORK_BOMB }, ...FIX], SOLVED, 'fork_bomb'),
  FIXES,
  act('floods, then errs', [...LOOK, { command: OUTPUT_FLOOD }, ...WRONG], UNSOLVED, 'output_flood'),
];

/** Acts of the instances that callers of the gateway post: one act for each instance, because the index of a call is not known. */
export const CALLED: ReadonlyMap<string, Act> = new Map([
  ['chaos__called-1', FIXES],
  ['chaos__called-2', ERRS],
]);

/** Makes the script. `delayMs`: delay of each answer, so that rollouts run while faults strike. */
export function chaosScript(delayMs: number): ScriptInput {
  const called = [...CALLED].map(([instance, { turns }]) => ({ instance, variants: [turns] }));
  return {
    // Some of the answers break off in the middle of their stream.
    delay: { fixed_ms: delayMs / 2, event_ms: delayMs / 20 },
    conversations: [...called, { variants: ACTS.map(({ turns }) => turns) }],
  };
}

/** Returns the act of a rollout of this instance and index. */
export function actOf(instanceId: string, index: number): Act {
  const act = CALLED.get(instanceId) ?? ACTS[index % ACTS.length];
  if (!act) throw new RangeError(`no act for ${instanceId} ${index}`);
  return act;
}
