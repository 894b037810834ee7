/** Reads what real agents sent (recorder/fixtures). A run is described by its requests, and by the earlier answer that each continues. */
import type { Message } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { type Recorded, readRecorded, recordedRuns } from '../../test/requests/recorded.ts';
import type { AgentRequest } from './dialect.ts';
import { canonicalArguments } from './fields.ts';
import { DIALECTS } from './registry.ts';

const dialectOf = ({ path }: Recorded) =>
  path.includes('/chat/completions') ? 'chat' : path.includes('/responses') ? 'responses' : 'messages';

/** What an echo must give back of an answer. */
const plain = ({ role, content, tool_calls, tool_call_id }: Message) => ({
  role,
  content: (content ?? '').trim(),
  tool_call_id,
  calls:
    tool_calls?.map(({ id, function: called }) => [id, called.name, canonicalArguments(called.arguments)]) ??
    [],
});
const ids = ({ calls }: ReturnType<typeof plain>) => calls.map(([id]) => id);
const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Whether the messages begin with those of an earlier request and its answer. `repaired`: the agent rewrote an unreadable call. */
function continuation(messages: Message[], earlier: Message[], answer: Message): 'yes' | 'repaired' | 'no' {
  const echo = messages[earlier.length];
  if (!echo || !earlier.every((message, at) => same(plain(message), plain(messages[at] as Message))))
    return 'no';
  if (messages.slice(earlier.length + 1).some(({ role }) => role === 'assistant')) return 'no';
  const [back, ours] = [plain(echo), plain(answer)];
  if (same(back, ours)) return 'yes';
  return ours.calls.length > 0 && back.content === ours.content && same(ids(back), ids(ours))
    ? 'repaired'
    : 'no';
}

type Exchange = { request: AgentRequest; answer: Message };

function read(run: string): Exchange[] {
  return readRecorded(run)
    .filter(({ answer }) => answer)
    .map((recorded) => ({
      request: DIALECTS[dialectOf(recorded)].read(recorded.body),
      answer: recorded.answer?.message as Message,
    }));
}

/** For each request the number of the request whose answer it continues (`-`: none; `r`: repaired). */
function continued(exchanges: Exchange[]): string {
  const found = exchanges.map(({ request }, at) => {
    for (let earlier = at - 1; earlier >= 0; earlier--) {
      const { request: before, answer } = exchanges[earlier] as Exchange;
      const kind = continuation(request.messages, before.messages, answer);
      if (kind !== 'no') return `${earlier + 1}${kind === 'repaired' ? 'r' : ''}`;
    }
    return '-';
  });
  return found.join(' ');
}

const letters = (messages: Message[]): string =>
  messages.map(({ role, tool_calls }) => role.charAt(0) + (tool_calls ? tool_calls.length : '')).join('');

/** The roles of the last request (a number: calls), the numbers of tools, and the continued requests. */
const RUNS: Record<string, { roles: string; tools: number[]; continued: string; dropped?: string[] }> = {
  'claude-code': { roles: 'susa1ta2tta1ta1ta1t', tools: [21], continued: '- 1 2 3 4 5' },
  'claude-code-bare': { roles: 'sua1ta2tta1ta1ta1t', tools: [3], continued: '- 1 2 3 4 5' },
  'claude-code-compaction': {
    roles: 'susa1tusa1ta1ta1ta1ta1t',
    tools: [21],
    continued: '- 1 2 3 4 5 6 7 8 8 - 11 12 13 14 15',
  },
  'claude-code-subagent': {
    roles: 'susa1ta1tau',
    tools: [21, 14, 19, 18],
    continued: '- 1 - - - 5 2 6 4 9 3 11 7',
  },
  codex: { roles: 'ssuua1ta2tta1ta1ta1t', tools: [7], continued: '- 1 2 3 4 5' },
  'codex-additional-tools': { roles: 'ssssuua1ta1t', tools: [11], continued: '- 1 2' },
  'codex-compaction': {
    roles: 'ssuuua1ta1ta1ta1t',
    tools: [7, 0],
    continued: '- 1 2 3 4 5 - 7 8 9 10 11 - 13 14 15 16',
  },
  'codex-free-text': { roles: 'ssuua1ta1t', tools: [8], continued: '- 1 2' },
  'codex-subagent': { roles: 'ssuua1ta1ta1t', tools: [12, 7], continued: '- 1 - 3 2 4 5' },
  'mini-swe-agent': { roles: 'sua1ta2tta1tuu', tools: [1], continued: '- 1 2 3 3 3' },
  'opencode-chat': { roles: 'sua1ta2tta1ta1ta1t', tools: [10], continued: '- 1 2 3 4r 5' },
  'opencode-messages': { roles: 'sua1ta2tta1ta1ta1t', tools: [10], continued: '- 1 2 3 4r 5' },
  'opencode-responses': { roles: 'sua1ta2tta1ta1ta1t', tools: [10], continued: '- 1 2 3 4r 5' },
  'opencode-subagent': { roles: 'sua1ta1t', tools: [10, 9], continued: '- - 2r 3 1 5' },
  openhands: { roles: 'sua1ta2tta1ta1ta1t', tools: [5], continued: '- 1 2 3 4r 5' },
  'openhands-condenser': {
    roles: 'sua1tua1ta1t',
    tools: [5, 0],
    continued: '- 1 2 3 4 5 6 7 - - 10 11 12 13 - - 16',
  },
  'qwen-code': { roles: 'sua1ta2tta1ta1ta1t', tools: [6], continued: '- 1 2 3 3 5r 6' },
  'qwen-code-compaction': {
    roles: 'sua1ta1ta1ta1ta1ta1ta1t',
    tools: [14, 0],
    continued: '- 1 2 3 4 5 6 7 8 - - - 12 13 14 15 16',
  },
  'qwen-code-subagent': {
    roles: 'sua1ta1ta1tau',
    tools: [14, 17, 16],
    continued: '- 1 - 2 - 4 - - - 9 10 11 8 13 14 7 16 17 5 19 20 3 22 23 6',
  },
  'terminus-2': { roles: 'uauauauau', tools: [0], continued: '- 1 2 3 4' },
};

describe('recorded requests', () => {
  test('every recorded run is described', () => {
    expect(recordedRuns().sort()).toEqual(Object.keys(RUNS).sort());
  });

  test.each(Object.entries(RUNS))('%s', (run, expected) => {
    const exchanges = read(run);
    const last = exchanges.at(-1)?.request;
    expect({
      roles: letters(last?.messages ?? []),
      tools: [...new Set(exchanges.map(({ request }) => request.tools.length))],
      continued: continued(exchanges),
      dropped: [...new Set(exchanges.flatMap(({ request }) => request.dropped))],
    }).toEqual({ dropped: [], ...expected });
  });

  test.each(Object.keys(RUNS))('%s contains no sentence of an agent', (run) => {
    expect(JSON.stringify(readRecorded(run))).not.toMatch(/ (the|you|your|should|must|this|that|with) /i);
  });
});
