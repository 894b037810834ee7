/** A stored rollout of an agent that came as a program, with several lines and outputs. */
import type { InstalledAgent } from '@swefarm/shared';
import { BRANCHED, trajectoryOfLines } from '@swefarm/trajectories/test/lines.ts';
import type { StoredRollout } from './stored.ts';

const AGENT: InstalledAgent = {
  ...{ name: 'claude-code', version: '2.1', card: 'c', digest: null, exit_code: 0, lines: 6 },
  ...{ masked: { abandoned: 1 }, requests: 9, whole: 3, repeated: 1, repaired: 1, refused: 0 },
  dropped: { 'tool web_search': 9 },
};

/** The model's texts and the names of the files are hostile. */
export function branchedRollout(hostile = ''): StoredRollout {
  const trajectory = trajectoryOfLines(BRANCHED);
  const [first, second] = trajectory.turns;
  const request = { dialect: 'messages', matched: 'continued', delivered: true } as const;
  if (first && second) {
    second.request = { ...request, repaired: true, repeated: 1 };
    trajectory.messages[second.message] = {
      ...{ role: 'assistant', content: `Edit it.${hostile}` },
      tool_calls: [
        {
          id: 'c1',
          type: 'function',
          function: { name: 'Edit', arguments: '{"file_path":"/testbed/a.py"}' },
        },
      ],
    };
  }
  const after = trajectory.lines?.[2]?.turns[0];
  if (after) after.request = { ...request, matched: 'other_prompt' };
  return {
    over: { agent: AGENT, turns: 8 },
    trajectory,
    outputs: [
      { name: 'output', content: 'done\n', bytes: 900 },
      { name: 'sessions/a b.jsonl', content: '{"type":"result"}\n', bytes: 18 },
      { name: '../../etc/x', content: Int8Array.from([1, -1]), bytes: 2 },
    ],
  };
}
