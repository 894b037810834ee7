/**
 * Executes a call of the model: the one place in which tools have effects. All effects on the sandbox go through the shell, in the order of
 * the calls, so that a replay which executes the recorded calls again reaches the same state, that of `undo_edit` included.
 */
import type { CommandResult } from '@swefarm/sandbox';
import { type CommandRecord, shellQuoted, type Turn } from '@swefarm/shared';
import type { Arguments, Call } from './actions.ts';
import { Editor } from './editor/editor.ts';
import { Interrupted, type RunScript } from './editor/files.ts';
import { type CommandState, countRepeats, executeCommand, recordCommand } from './execute.ts';
import { renderObservation } from './observation.ts';

type ToolCall = Extract<Call, { kind: 'tool' }>;

/** A state of a rollout with the editor of its toolset. */
export type CallState = CommandState & {
  readonly task: CommandState['task'] & { workdir: string };
  editor: Editor | null;
};

type Done = { submitted: { text: string | null } } | { submitted: null; observation: string };

/** Throws the errors of {@link Shell.run}; even then `turn` contains one record of the call. */
export async function executeCall(
  state: CallState,
  turn: Turn,
  call: Exclude<Call, { kind: 'submit' }>,
  timeoutSeconds: number,
): Promise<Done> {
  if (call.kind === 'bash') return await executeCommand(state, turn, call.command, timeoutSeconds);
  const { tool, raw } = call;
  if (typeof tool.run !== 'string') {
    const script = scriptOf(tool.run.script, call.args);
    return await executeCommand(state, turn, `${tool.name} ${raw}`, timeoutSeconds, {
      script,
      label: labelOf(call),
    });
  }
  const observation = await recordCommand(state, turn, labelOf(call), async (record) => {
    const shown = tool.run === 'think' ? thought(record) : await edit(state, call, record, timeoutSeconds);
    const repeats = countRepeats(state, `${tool.name} ${raw}`);
    return repeats > 0 ? `${shown}\n${state.prompts.render('collapse', { count: repeats })}` : shown;
  });
  return { submitted: null, observation };
}

function thought(record: CommandRecord): string {
  record.exit_code = 0;
  return 'Your thought has been logged.';
}

async function edit(
  state: CallState,
  { tool, args }: ToolCall,
  record: CommandRecord,
  timeoutSeconds: number,
) {
  const { config, workdir } = state.task;
  const { verbatim = false } = tool;
  state.editor ??= new Editor({ workdir, verbatim, mostEntries: config.observation_limit });
  const run: RunScript = async (script, maxOutputBytes) => {
    const timeoutMs = Math.max(1, Math.ceil(timeoutSeconds * 1000));
    const result = await state.deps.shell.run(script, {
      timeoutMs,
      maxOutputBytes,
      signal: state.deps.signal,
    });
    if (result.exitCode === null || result.note !== null) throw new Interrupted(result);
    return result;
  };
  try {
    const { ok, text } = await state.editor.call(args, run);
    record.exit_code = ok ? 0 : 1;
    record.output_bytes = Buffer.byteLength(text);
    return state.prompts.render('tool_observation', { output: text });
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    return interrupted(state, error.result, record, timeoutSeconds);
  }
}

/** Renders the end of a script that did not end by itself. Its output is part of a file, which the observation leaves out. */
function interrupted(state: CallState, result: CommandResult, record: CommandRecord, timeoutSeconds: number) {
  record.note = result.note;
  record.exit_code = result.exitCode;
  const { prompts, task } = state;
  const silent = { ...result, head: Buffer.alloc(0), tail: null, outputBytes: 0 };
  return renderObservation(silent, {
    prompts,
    limit: task.config.observation_limit,
    timeoutSeconds,
    repeats: 0,
  });
}

/** Arguments are variables `ARG_NAME`: text as it is, other values as JSON. Absent arguments are unset. */
function scriptOf(script: string, args: Arguments): string {
  const given = Object.entries(args).filter(([key, value]) => /^[A-Za-z_]\w*$/.test(key) && value !== null);
  const lines = given.map(([key, value]) => {
    const text = typeof value === 'string' ? value.replaceAll('\0', '') : JSON.stringify(value);
    return `export ARG_${key}=${shellQuoted(text)}`;
  });
  return [...lines, script].join('\n');
}

/** Returns a short text of a call for records and logs: the call itself is in the message. */
function labelOf({ tool, args, raw }: ToolCall): string {
  const words = tool.run === 'str_replace_editor' ? [args.command, args.path].map(String).join(' ') : raw;
  return `${tool.name} ${words}`.slice(0, 300);
}
