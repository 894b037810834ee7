/**
 * Writes the answer to `/run` in pieces. Each model call repeats all earlier tokens, so an answer may have 10 MB and more; it is never
 * completely in memory.
 */
import { officialReport } from '@swefarm/grading';
import {
  type ArtifactContent,
  allTurns,
  type EndpointProbe,
  isTruncated,
  jsonText,
  linesOf,
  type Result,
  successOf,
} from '@swefarm/shared';
import type { LineChoice } from '../../export/lines.ts';
import { float, type Piece } from './json.ts';
import { linePieces, outputPieces } from './output.ts';
import { conversationOf, toolItem } from './responseitems.ts';
import type { GymRow } from './row.ts';
import { trajectoryParts } from './trajectory.ts';

export type Answer = {
  row: GymRow;
  result: Result;
  /** Content of the artifact; null: no artifact is stored. */
  content: ArtifactContent | null;
  repo: string;
  evaluationTimeout: number;
  /** Why the rollout counts as unjudged, although it may have a verdict; null when it counts as judged. */
  unjudged: Unjudged | null;
  /** Result of the gateway's probe of the endpoints; null or absent: there is no result. */
  probe?: EndpointProbe | null;
  /** `all`: the answer also has the output of each further line that is trained on. */
  lines: LineChoice;
  trajectory: boolean;
  /** Whether a judged rollout that a token limit cut is masked. The mask does not change its reward. */
  maskOverlong?: boolean;
  /** Whether the answer includes the stored experts of each token; absent: yes. */
  experts?: boolean;
};

export type Unjudged = {
  class: string;
  message: string;
  /** `failure`: Gym's collector writes the rollout to its file of failures. `masked`: trainers give the sample no weight. */
  shown: 'failure' | 'masked';
  terminal?: boolean;
  /** True if the collector does not store the row and requests it again on resume. */
  noPersist?: boolean;
};

/** Returns whether at least one model call of the main line has token ids; NeMo RL rejects a sample without token ids. */
export const hasTrainedTurn = (content: ArtifactContent | null): boolean =>
  content?.trajectory?.turns.some((turn) => (turn.tokens?.generation.length ?? 0) > 0) ?? false;

export function* answerPieces(answer: Answer): Generator<Piece> {
  const { row, result, content, unjudged, experts = true } = answer;
  const isMasked = unjudged?.shown === 'masked' || (answer.maskOverlong === true && isTruncated(result));
  const lines = linesOf(content?.trajectory ?? { messages: [], turns: [] });
  const [main] = lines;
  const conversation = conversationOf(main);
  const tools = (main.tools ?? []).map(toolItem);
  const params = { ...row.responses_create_params, input: conversation.prompt, tools };
  yield `{"responses_create_params":${jsonText(params)},"response":{`;
  yield `${inner(responseHead(answer, tools))},"created_at":${float(result.finished_at / 1000)},"output":[`;
  yield* outputPieces(main, conversation, experts);
  yield `]},"reward":${float(result.outcome === 'judged' ? (result.reward ?? 0) : 0)}`;
  if (result.outcome === 'judged') yield partPieces(result);
  // NeMo RL masks the loss if `instance_config` asks for it. Gym excludes a sample from scores if the top-level field is set.
  yield `,"mask_sample":${unjudged?.shown === 'masked'}`;
  yield `,"instance_config":{"mask_sample":${isMasked}},${inner(facts(answer))}`;
  if (unjudged) yield `,${inner(failureFields(unjudged))}`;
  if (lines.length > 1) yield* linePieces(lines, answer.lines, experts);
  if (answer.trajectory) {
    yield ',"ng_trajectory":';
    yield* trajectoryParts(lines, {
      taskId: result.instance_id,
      rolloutId: correlationId(row),
      status: unjudged ? 'failed' : 'completed',
      seconds: result.seconds.agent,
      finishedAt: result.finished_at,
      resolved: successOf(result),
    });
  }
  yield '}';
}

/** Writes a line of Gym's collector: the fields of `head`, then the fields of the answer. */
export function* rowPieces(head: Readonly<Record<string, unknown>>, answer: Answer): Generator<Piece> {
  yield `${jsonText(head).slice(0, -1)},`;
  const pieces = answerPieces(answer);
  // The text of `head` already contains the opening brace.
  yield String(pieces.next().value).slice(1);
  yield* pieces;
  yield '\n';
}

/**
 * Returns the parts of the reward as `part/NAME`, and its components as `score/NAME`, also as `reward_components` if their sum is the
 * reward, as NeMo RL requires.
 */
function partPieces({ reward, reward_parts: parts = {}, reward_components: components }: Result): string {
  const numbers = (prefix: string, of: Readonly<Record<string, number>>): string[] =>
    Object.entries(of).map(([name, value]) => `${jsonText(prefix + name)}:${float(value)}`);
  const sum = Object.values(components ?? {}).reduce((total, value) => total + value, 0);
  const adding = components && Math.abs(sum - (reward ?? 0)) <= 1e-6;
  const fields = [
    ...(adding ? [`"reward_components":{${numbers('', components).join(',')}}`] : []),
    ...numbers('score/', components ?? {}),
    ...numbers('part/', parts),
  ];
  return fields.map((field) => `,${field}`).join('');
}

/** Returns Gym's name of a rollout: the id from the caller, else `TASK-ROLLOUT` with the attempt (nemo_gym/rollout_correlation.py). */
function correlationId(row: GymRow): string {
  if (row._ng_rollout_id) return row._ng_rollout_id;
  const attempt = row._ng_attempt_index ? `-a${row._ng_attempt_index}` : '';
  return `${row._ng_task_index ?? 0}-${row._ng_rollout_index ?? 0}${attempt}`;
}

/** Returns the JSON fields of an object, without braces. */
const inner = (object: Readonly<Record<string, unknown>>): string => jsonText(object).slice(1, -1);

function responseHead({ row, result, content }: Answer, tools: readonly unknown[]) {
  const { prompt, completion } = result.tokens;
  return {
    id: `resp_${result.rollout_id}`,
    object: 'response',
    model: content?.trajectory?.model ?? row.responses_create_params.model ?? '',
    status: result.exit_status === 'submitted' ? 'completed' : 'incomplete',
    error: null,
    // The token limit is the only end for which the Responses API has a reason.
    incomplete_details: isTruncated(result) ? { reason: 'max_output_tokens' } : null,
    parallel_tool_calls: false,
    tool_choice: 'auto',
    tools,
    metadata: row.responses_create_params.metadata ?? null,
    usage: {
      input_tokens: prompt,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: completion,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: prompt + completion,
    },
  };
}

function facts(answer: Answer) {
  const { result, content, evaluationTimeout } = answer;
  const report = content?.report ?? null;
  const official =
    report &&
    officialReport(report, {
      log: content?.test_log ?? null,
      model: content?.trajectory?.model ?? 'swefarm',
      timeoutSeconds: evaluationTimeout,
    });
  return {
    ...verdictOf(answer),
    sampling: content?.trajectory?.sampling ?? null,
    policy_probe: answer.probe ?? null,
    metadata: {
      instance_id: result.instance_id,
      model_patch: content?.patch ?? null,
      eval_report: official ?? {},
    },
  };
}

/** Returns the small fields of an answer, without the reward. */
export function verdictOf({ result, content, repo }: Pick<Answer, 'result' | 'content' | 'repo'>) {
  const report = content?.report ?? null;
  const { unread_calls: unread } = result;
  return {
    instance_id: result.instance_id,
    repo,
    rollout_id: result.rollout_id,
    // Null means that the rollout has a score without a verdict.
    resolved: result.resolved === null && result.reward !== null ? null : successOf(result) === true,
    judged: result.outcome === 'judged',
    patch_applied: report?.patch_state === 'applied',
    evaluation_error: result.failure?.stage === 'evaluation' || report?.evaluation === 'tests_cannot_start',
    turns: result.turns,
    exit_status: result.exit_status,
    ...(result.submits === undefined ? {} : { submits: result.submits }),
    ...(result.variant ? { variant: result.variant } : {}),
    ...(result.dry_run ? { dry_run: result.dry_run } : {}),
    limit: content?.trajectory?.limit ?? null,
    truncated: isTruncated(result),
    // Number of answers with an unparsed tool call, by the marker of the call.
    unread_calls: unread === undefined ? {} : { [unread.marker]: unread.answers },
    policy_version: result.policy_version,
    policy_version_first: result.policy_version_first ?? null,
    policy_versions: versionsOf(content),
    trust: report?.trust ?? null,
  };
}

const versionsOf = (content: ArtifactContent | null): string[] => [
  ...new Set(
    (content?.trajectory ? allTurns(content.trajectory) : []).flatMap(({ policy_version: { start, end } }) =>
      [start, end].filter((version) => version !== null),
    ),
  ),
];

const failureFields = ({ class: name, message, shown, terminal, noPersist }: Unjudged) => ({
  failure_reason: `${name}: ${message}`,
  mask_sample: shown === 'masked',
  ...(shown === 'failure' && {
    _ng_failure_class: name,
    _ng_failure_message: message,
    _ng_failure_terminal: terminal || undefined,
    _ng_no_persist: noPersist || undefined,
  }),
});
