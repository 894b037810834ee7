/** The lines into which the requests of the recorded runs fall, whatever policy answers them. */
import type { Line } from '@swefarm/shared';
import { card } from '../options.ts';

/** A card with which all recorded runs can be read. */
export const RECORDED_CARD = card(
  { malformed: 'raw' },
  { branches: { subagent: [{ header: 'x-claude-code-agent-id' }, { header: 'x-parent-session-id' }] } },
);

export const summaryOf = ({ id, kind, from, turns }: Line): string =>
  [id, kind, ...(from ? [`after ${from.line}+${from.turns}`] : []), turns.length].join(' ');

export const RECORDED_LINES: Record<string, string[]> = {
  'claude-code-bare': ['L1 main 6'],
  'claude-code-compaction': ['L1 main 9', 'L2 summary after L1+8 1', 'L3 main 6'],
  'claude-code-subagent': ['L1 main 4', 'L2 subagent 3', 'L3 subagent 3', 'L4 subagent 3'],
  'claude-code': ['L1 main 6'],
  'codex-additional-tools': ['L1 main 3'],
  'codex-free-text': ['L1 main 3'],
  'codex-compaction': ['L1 main 5', 'L2 summary 1', 'L3 main 5', 'L4 summary 1', 'L5 main 5'],
  'codex-subagent': ['L1 main 4', 'L2 subagent 3'],
  codex: ['L1 main 6'],
  'mini-swe-agent': ['L1 main 4', 'L2 abandoned after L1+3 1', 'L3 abandoned after L1+3 1'],
  'opencode-chat': ['L1 main 6'],
  'opencode-messages': ['L1 main 6'],
  'opencode-responses': ['L1 main 6'],
  'opencode-subagent': ['L1 main 3', 'L2 subagent 3'],
  'openhands-condenser': ['L1 main 8', 'L2 summary 1', 'L3 main 5', 'L4 summary 1', 'L5 main 2'],
  openhands: ['L1 main 6'],
  'qwen-code-compaction': ['L1 main 9', 'L2 summary 1', 'L3 main 1', 'L4 main 6'],
  'qwen-code-subagent': [
    'L1 main 5',
    'L2 subagent 4',
    'L3 subagent 4',
    'L4 subagent 4',
    'L5 subagent 4',
    'L6 subagent 4',
  ],
  'qwen-code': ['L1 main 6', 'L2 abandoned after L1+3 1'],
  'terminus-2': ['L1 main 5'],
};
