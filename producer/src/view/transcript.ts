/** Renders a rollout as text that is safe to print. */
import { withNamedPictures } from '@swefarm/policy';
import type {
  ArtifactContent,
  CommandRecord,
  LiveTurn,
  Message,
  Report,
  Trajectory,
  Turn,
} from '@swefarm/shared';
import { middle, terminalSafe } from '@swefarm/trajectories';

export type TranscriptOptions = {
  width: number;
  /** Whether to show whole texts, all failing tests and the test log. */
  full: boolean;
  heading: (text: string) => string;
};

const LINES_SHOWN = 24;

export function describeArtifact(content: ArtifactContent, options: TranscriptOptions): string {
  const { trajectory, patch, report } = content;
  const parts: string[] = trajectory ? [describeTurns(trajectory, options)] : [];
  const add = (title: string, text: string): void => void parts.push(section(title, text, options));
  if (content.failure_detail) add('failure', cut(content.failure_detail, options));
  add('patch', patch ? cut(patch, options) : patch === '' ? '(empty)' : '(none)');
  if (report) add('report', describeReport(report, options));
  if (options.full && content.test_log) add('test log', terminalSafe(content.test_log));
  return parts.join('\n');
}

export function describeTurns({ messages, turns, ...end }: Trajectory, options: TranscriptOptions): string {
  const turnsByMessage = new Map(turns.map((turn, index) => [turn.message, { turn, number: index + 1 }]));
  const tokens =
    end.contiguous === undefined ? '' : `, token ids ${end.contiguous ? 'contiguous' : 'not contiguous'}`;
  return [
    ...messages.flatMap((message, at) => describeMessage(message, turnsByMessage.get(at), options)),
    section(
      'end',
      `${end.exit_status ?? 'no exit status'}${end.limit && end.limit !== end.exit_status ? ` (${end.limit})` : ''} after ${turns.length} turns${tokens}`,
      options,
    ),
  ].join('\n');
}

export function describeLiveTurn(turn: LiveTurn, options: TranscriptOptions): string {
  return turn.messages
    .flatMap((message, at) =>
      describeMessage(message, at === turn.answer ? { turn, number: turn.turn } : undefined, options),
    )
    .join('\n');
}

type Answered = { turn: Omit<Turn, 'message' | 'tokens'>; number: number };

function describeMessage(
  message: Message,
  answered: Answered | undefined,
  options: TranscriptOptions,
): string[] {
  const title = answered ? turnTitle(answered) : message.role;
  const commands = answered?.turn.commands.map(commandLine) ?? [];
  return [section(title, messageText(withNamedPictures(message), options), options), ...commands];
}

function section(title: string, text: string, { heading, width }: TranscriptOptions): string {
  const rest = '─'.repeat(Math.max(3, Math.min(width, 100) - title.length - 5));
  return `${heading(`── ${title} ${rest}`)}\n${text}`;
}

function turnTitle({ turn, number }: Answered): string {
  const usage = turn.usage ? `, ${turn.usage.prompt_tokens} + ${turn.usage.completion_tokens} tokens` : '';
  const version = turn.policy_version.end ? `, weights ${terminalSafe(turn.policy_version.end)}` : '';
  const cut = turn.finish_reason === 'length' ? ', cut by the token limit' : '';
  return `turn ${number} (${turn.model_seconds.toFixed(1)} s${usage}${version}${cut})`;
}

function messageText(message: Message, options: TranscriptOptions): string {
  const calls = (message.tool_calls ?? []).map(
    (call) => `→ ${call.function.name}(${call.function.arguments})`,
  );
  const reasoning = message.reasoning_content ? [`(thinks) ${message.reasoning_content}`] : [];
  const texts = [...reasoning, ...(message.content ? [message.content] : []), ...calls];
  return cut(texts.join('\n') || '(nothing)', options);
}

function commandLine(command: CommandRecord): string {
  const code = command.exit_code === null ? 'no exit code' : `exit ${command.exit_code}`;
  const note = command.note === null ? '' : `, ${command.note.replaceAll('_', ' ')}`;
  const first = terminalSafe(command.command.split('\n')[0] ?? '');
  return `  $ ${middle(first, 60)}  [${code}, ${command.seconds.toFixed(2)} s, ${command.output_bytes} bytes${note}]`;
}

/** Returns the first and last lines of a long text. */
function cut(text: string, options: TranscriptOptions): string {
  const lines = terminalSafe(text).trimEnd().split('\n');
  if (options.full || lines.length <= LINES_SHOWN) return lines.join('\n');
  const half = LINES_SHOWN / 2;
  const left = lines.length - LINES_SHOWN;
  return [...lines.slice(0, half), `  … ${left} lines, --full shows them …`, ...lines.slice(-half)].join(
    '\n',
  );
}

function describeReport(report: Report, options: TranscriptOptions): string {
  const trust = report.trust.reasons.length > 0 ? ` (${report.trust.reasons.join('; ')})` : '';
  const verdict =
    report.resolved === null ? 'nothing to judge' : report.resolved ? 'resolved' : 'not resolved';
  const lines = [
    `${verdict} by ${report.grader}; patch ${report.patch_state}; tests ${report.evaluation}; trust ${report.trust.level}${terminalSafe(trust)}`,
  ];
  for (const name of ['FAIL_TO_PASS', 'PASS_TO_PASS'] as const) {
    const bucket = report.tests_status?.[name];
    if (!bucket) continue;
    lines.push(`${name}: ${bucket.success.length} passed, ${bucket.failure.length} did not`);
    const shown = options.full ? bucket.failure : bucket.failure.slice(0, 10);
    for (const test of shown)
      lines.push(`  ✗ ${terminalSafe(test)} ${terminalSafe(report.status_map?.[test] ?? 'missing')}`);
    if (shown.length < bucket.failure.length)
      lines.push(`  … and ${bucket.failure.length - shown.length} more`);
  }
  return lines.join('\n');
}
