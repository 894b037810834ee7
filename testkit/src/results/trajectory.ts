/** A fabricated trajectory: the agent looks, edits, tests and submits, with token ids on every turn. */
import type { LiveTurn, Message, Trajectory, Turn } from '@swefarm/shared';
import { unit } from '../policy/random.ts';

const FILE = Array.from({ length: 60 }, (_, line) => `${line + 1}\tvalue_${line} = compute(${line})`).join(
  '\n',
);

/** The texts, commands and outputs that the agent cycles through. */
const STEPS: readonly (readonly [prose: string, command: string, seen: string, code: number])[] = [
  [
    'Let me look around first.',
    'ls -la && git log --oneline | head -3',
    'total 48\npkg\ntests\nREADME.md',
    0,
  ],
  ['Where is merge defined?', 'grep -rn "def merge" pkg', 'pkg/core.py:10:def merge(left, right):', 0],
  ['I read the whole file.', 'cat -n pkg/core.py', FILE, 0],
  [
    'I write a script that shows the bug.',
    "cat > reproduce.py <<'END'\nfrom pkg.core import merge\nprint(merge({'a': 1}, {'a': None}))\nEND\npython reproduce.py",
    "{'a': None}",
    0,
  ],
  [
    'The update must skip None.',
    "sed -i 's/result.update(right)/result.update({k: v for k, v in right.items() if v is not None})/' pkg/core.py",
    '',
    0,
  ],
  [
    'Now the tests.',
    'python -m pytest -q tests/test_core.py',
    'F..........\n1 failed, 60 passed in 0.84s',
    1,
  ],
];

/** Ids and log-probabilities of `count` tokens; a few are unlikely. */
function tokensOf(turn: number, seed: number, prefix_length: number): NonNullable<Turn['tokens']> {
  const draw = (at: number): number => unit(seed * 1_000 + turn, at);
  return {
    prefix_length,
    prompt_suffix: Int32Array.from({ length: 180 }, (_, at) => Math.floor(draw(at) * 50_000)),
    generation: Int32Array.from({ length: 90 }, (_, at) => Math.floor(draw(at + 500) * 50_000)),
    log_probs: Float32Array.from({ length: 90 }, (_, at) => Math.log(1 - draw(at + 900) * 0.97)),
  };
}

/** `hostile` is added to the first observation, as output of a program that the model ran. */
export function madeTrajectory(count: number, seed: number, hostile = ''): Trajectory {
  const messages: Message[] = [
    { role: 'system', content: 'You are a helpful assistant that can interact with a computer shell.' },
    { role: 'user', content: 'Solve this issue:\n\nmerge() overwrites values with None\n\nIn /testbed.' },
  ];
  const turns = Array.from({ length: count }, (_, at): Turn => {
    const step = (at + (at > 1 ? seed : 0)) % STEPS.length;
    const [prose, command, seen, exit_code] = STEPS[step] ?? ['', '', '', 0];
    const message = messages.length;
    const output = at === 0 ? `${seen}${hostile}` : seen;
    messages.push({
      role: 'assistant',
      content: `${prose}\n\n\`\`\`bash\n${command}\n\`\`\``,
      ...(at % 3 === 0 ? { reasoning_content: `Step ${at + 1}: think about what to do next.` } : {}),
    });
    messages.push({
      role: 'user',
      content: `<returncode>${exit_code}</returncode>\n<output>\n${output}\n</output>`,
    });
    return {
      message,
      finish_reason: 'stop',
      model_seconds: 1 + unit(seed, at) * 3,
      usage: { prompt_tokens: 400 + at * 270, completion_tokens: 90 },
      policy_version: { start: 'step-41', end: 'step-41' },
      tokens: tokensOf(at, seed, at * 270),
      commands: [
        { command, exit_code, seconds: unit(seed, at + 99), output_bytes: output.length, note: null },
      ],
    };
  });
  return {
    format: 'swefarm-trajectory-1',
    token_mode: 'echo',
    model: 'scripted-7b',
    endpoint: 'http://policy:8000/v1',
    messages,
    turns,
    exit_status: 'submitted',
    contiguous: true,
  };
}

/** Turn `index` of {@link madeTrajectory} as a worker reports it while the rollout runs. */
export function madeLiveTurn({ turns, messages }: Trajectory, index: number): LiveTurn {
  const turn = turns[index];
  if (!turn) throw new RangeError(`the trajectory has no turn ${index}`);
  const from = index === 0 ? 0 : turn.message;
  const { finish_reason, model_seconds, usage, policy_version, commands } = turn;
  return {
    ...{ attempt: 1, turn: index + 1, at: Date.now(), answer: turn.message - from },
    messages: messages.slice(from, turns[index + 1]?.message),
    ...{ finish_reason, model_seconds, usage, policy_version, commands },
  };
}
