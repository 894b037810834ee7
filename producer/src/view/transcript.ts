/** Renders a rollout as text that is safe to print. */
import { withNamedPictures } from '@swefarm/policy';
import {
  type ArtifactContent,
  allTurns,
  type CommandRecord,
  type LiveTurn,
  linesOf,
  type Message,
  ownTurns,
  type Report,
  type Trajectory,
  type Turn,
  type TurnRequest,
  type WholeLine,
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
  if (content.outputs?.length) add('outputs', describeOutputs(content.outputs));
  if (content.collected?.length) add('artifacts', describeCollected(content.collected));
  if (options.full && content.test_log) add('test log', terminalSafe(content.test_log));
  return parts.join('\n');
}

/** Describes the turns of all lines; a heading names each line if there are several. */
export function describeTurns(trajectory: Trajectory, options: TranscriptOptions): string {
  const { exit_status, limit, contiguous } = trajectory;
  const lines = linesOf(trajectory);
  const tokens =
    contiguous === undefined ? '' : `, token ids ${contiguous ? 'contiguous' : 'not contiguous'}`;
  const count = lines.length > 1 ? ` in ${lines.length} lines` : '';
  const end = `${exit_status ?? 'no exit status'}${limit && limit !== exit_status ? ` (${limit})` : ''}`;
  return [
    ...lines.flatMap((line) => [
      ...(lines.length > 1 ? [section(lineTitle(line), lineText(line), options)] : []),
      ...describeLine(line, options),
    ]),
    section('end', `${end} after ${allTurns(trajectory).length} turns${count}${tokens}`, options),
  ].join('\n');
}

/** Describes the messages and turns that the line itself has. */
function describeLine(line: WholeLine, options: TranscriptOptions): string[] {
  const numbered = ownTurns(line).map((turn, index) => ({ turn, number: index + 1 }));
  const byMessage = new Map(numbered.map((one) => [one.turn.message, one]));
  return line.messages.flatMap((message, at) =>
    at < line.shared.messages ? [] : describeMessage(message, byMessage.get(at), options),
  );
}

const lineTitle = ({ id, kind }: WholeLine): string => `line ${id}: ${kind}`;

function lineText(line: WholeLine): string {
  const { from, masked } = line;
  const start = from ? `continues ${from.line} after ${from.turns} of its turns` : 'has a prompt of its own';
  const trained = masked === null ? 'is trained on' : `is not trained on (${masked})`;
  return `${start}, ${ownTurns(line).length} turns, ${trained}`;
}

const describeOutputs = (outputs: NonNullable<ArtifactContent['outputs']>): string =>
  [
    ...outputs.map(({ name, content, bytes }) => {
      const stored = typeof content === 'string' ? Buffer.byteLength(content) : content.length;
      return `${terminalSafe(name)}: ${stored < bytes ? `${stored} of ` : ''}${bytes} bytes`;
    }),
    '--out DIR writes them',
  ].join('\n');

const describeCollected = (collected: NonNullable<ArtifactContent['collected']>): string =>
  collected
    .map(({ source, status, why, files }) => {
      const count = status === 'ok' ? `, ${files.length} files and folders` : '';
      return terminalSafe(`${source}: ${status}${count}${why === undefined ? '' : `: ${why}`}`);
    })
    .join('\n');

export function describeLiveTurn(turn: LiveTurn, options: TranscriptOptions): string {
  const of = turn.line && { line: turn.line };
  return turn.messages
    .flatMap((message, at) =>
      describeMessage(message, at === turn.answer ? { turn, number: turn.turn, ...of } : undefined, options),
    )
    .join('\n');
}

type Answered = { turn: Omit<Turn, 'message' | 'tokens'>; number: number } & Pick<LiveTurn, 'line'>;

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

function turnTitle({ turn, number, line }: Answered): string {
  const usage = turn.usage ? `, ${turn.usage.prompt_tokens} + ${turn.usage.completion_tokens} tokens` : '';
  const version = turn.policy_version.end ? `, weights ${terminalSafe(turn.policy_version.end)}` : '';
  const cut = turn.finish_reason === 'length' ? ', cut by the token limit' : '';
  const request = turn.request ? requestText(turn.request) : '';
  const of = line ? ` of ${line.id}, ${line.kind}` : '';
  return `turn ${number}${of} (${turn.model_seconds.toFixed(1)} s${usage}${version}${cut}${request})`;
}

/** Returns how the request was matched, and what else was unusual about it. */
function requestText({ matched, repaired, repeated = 0, delivered }: TurnRequest): string {
  return [
    matched === 'continued'
      ? ''
      : matched === 'first'
        ? ', first prompt'
        : `, prompt rendered whole: ${matched}`,
    repaired ? ', given back in another form' : '',
    repeated > 0 ? `, asked ${repeated + 1} times` : '',
    delivered ? '' : ', not delivered',
  ]
    .join('')
    .replaceAll('_', ' ');
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
