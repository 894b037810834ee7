/** Writes the stored facts of a rollout, without token ids, as one table row, for pandas, pyarrow and `datasets`. */
import { picturesOf } from '@swefarm/policy';
import { allTurns, jsonText, type Message } from '@swefarm/shared';
import type { ExportFormat } from '../../export/format.ts';
import type { LineChoice } from '../../export/lines.ts';
import { openParquetShards } from '../../export/parquetshards.ts';
import type { ExportedRollout } from '../../export/rollout.ts';

export const everything: ExportFormat = {
  description: 'everything that is stored, as shards of parquet',
  forms: ['parquet'],
  lines: ['all', 'main'],
  shape: 'folder',
  open: (request) =>
    openParquetShards(request, {
      columns: COLUMNS,
      rowsOf: (rollout) => rowsOf(rollout, request.lines),
      groupBytes: 8 * 1024 ** 2,
    }),
};

const MESSAGES = [
  {
    role: 'text',
    content: 'text',
    reasoning_content: 'text',
    tool_call_id: 'text',
    tool_calls: [{ id: 'text', name: 'text', arguments: 'text' }],
    pictures: [{ address: 'text', media_type: 'text', sha256: 'text', data: 'text' }],
  },
] as const;

const COLUMNS = {
  instance_id: 'text',
  run_id: 'text',
  rollout_id: 'text',
  rollout_index: 'integer',
  sample: 'integer',
  repo: 'text',
  outcome: 'text',
  resolved: 'boolean',
  success: 'boolean',
  reward: 'double',
  reward_row: 'text',
  reward_table: 'text',
  exit_status: 'text',
  truncated: 'boolean',
  branch_of: { rollout_id: 'text', turn: 'integer' },
  branch_rewards: [{ turn: 'integer', branches: 'integer', rewarded: 'integer', reward_mean: 'double' }],
  trust: 'text',
  failure: 'text',
  turns: 'integer',
  prompt_tokens: 'integer',
  completion_tokens: 'integer',
  model: 'text',
  agent: 'text',
  policy_version: 'text',
  tag: 'text',
  licence: 'text',
  seconds: 'double',
  node: 'text',
  runtime: 'text',
  finished_at: 'integer',
  problem_statement: 'text',
  patch: 'text',
  messages: MESSAGES,
  tools: 'text',
  lines: [
    {
      id: 'text',
      kind: 'text',
      masked: 'text',
      tools: 'text',
      turns: 'integer',
      from: { line: 'text', turns: 'integer', messages: 'integer' },
      messages: MESSAGES,
    },
  ],
  commands: [{ turn: 'integer', command: 'text', exit_code: 'integer', seconds: 'double', note: 'text' }],
  report: 'text',
  facts: 'text',
  test_log: 'text',
  has_tokens: 'boolean',
  imported: 'text',
  software_version: 'text',
  exported_by: 'text',
} as const;

const json = (value: unknown): string | null =>
  value === null || value === undefined ? null : jsonText(value);

function messageOf({ tool_calls, ...message }: Message) {
  return {
    ...message,
    pictures: picturesOf(message).map(({ address, file }) => ({ address, ...file })),
    tool_calls: tool_calls?.map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      arguments: text,
    })),
  };
}

function rowsOf(rollout: ExportedRollout, choice: LineChoice) {
  const { line, content, instance, provenance, patch, sample } = rollout;
  const trajectory = content?.trajectory ?? null;
  const lines = choice === 'all' ? (trajectory?.lines ?? []) : [];
  const row = {
    ...line,
    ...provenance,
    sample,
    repo: instance?.repo,
    failure: json(line.failure),
    prompt_tokens: line.tokens.prompt,
    completion_tokens: line.tokens.completion,
    seconds: line.seconds.total,
    problem_statement: instance?.problem_statement,
    patch,
    messages: trajectory?.messages.map(messageOf),
    tools: json(trajectory?.tools),
    // Messages of a line without those of the line that it continues, as they are stored.
    lines: lines.map((line) => ({
      ...line,
      tools: json(line.tools),
      turns: line.turns.length,
      messages: line.messages.map(messageOf),
    })),
    commands: trajectory?.turns.flatMap(({ commands }, turn) => commands.map((one) => ({ ...one, turn }))),
    report: json(content?.report),
    facts: json(line.facts),
    test_log: content?.test_log,
    has_tokens: trajectory !== null && allTurns(trajectory).some(({ tokens }) => tokens !== null),
    imported: json(line.imported),
  };
  const texts = [...(trajectory ? [trajectory] : []), ...lines]
    .flatMap(({ messages }) => messages)
    .reduce((sum, message) => sum + sizeOf(message), 0);
  return { rows: [row], bytes: texts + (content?.test_log?.length ?? 0) + 4096 };
}

const sizeOf = (message: Message): number =>
  picturesOf(message).reduce((sum, { file }) => sum + (file?.data.length ?? 0), message.content?.length ?? 0);
