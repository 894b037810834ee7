/** Carries out one input of an external driver, and records it as a turn with one tool call. */
import type { CommandResult } from '@swefarm/sandbox';
import {
  type AnswerContent,
  type InputError,
  type SessionAnswer,
  type SessionInput,
  shellExports,
  shellQuoted,
  type Turn,
} from '@swefarm/shared';
import type { AgentDeps } from './agent.ts';
import { type CommandState, executeCommand } from './execute.ts';

/** Files and patch of the sandbox. Failures that the driver or the sandbox's code caused are returned. */
export type SandboxFiles = {
  write(path: string, content: Buffer, mode: number): Promise<InputError | null>;
  read(path: string, maxBytes: number): Promise<Buffer | InputError>;
  /** Returns the difference to the tree at the start. */
  diff(): Promise<Buffer | InputError>;
};

export type InputDeps = Pick<AgentDeps, 'shell' | 'signal' | 'onTurn' | 'onSubmit'> & { files: SandboxFiles };

export type InputState = CommandState & { readonly deps: InputDeps };

type Command = Extract<SessionInput, { kind: 'command' }>;
type FileInput = Extract<SessionInput, { kind: 'write' | 'read' | 'diff' }>;
type Done = { answer: SessionAnswer; content?: Buffer };

/** Names of the tool calls in the trajectory. */
const TOOLS = { command: 'bash', write: 'write_file', read: 'read_file', diff: 'diff' } as const;

/** Throws the errors of {@link executeCommand} and of {@link SandboxFiles}; even then the trajectory contains the turn. */
export async function runInput(
  state: InputState,
  seq: number,
  input: Command | FileInput,
  content: Buffer | null,
  leftSeconds: number,
): Promise<Done | { submitted: { text: string | null } }> {
  const { trajectory, deps } = state;
  const id = callId(seq);
  const called = { name: TOOLS[input.kind], arguments: JSON.stringify(argumentsOf(input)) };
  const tool_calls = [{ id, type: 'function' as const, function: called }];
  const turn: Turn = {
    message: trajectory.messages.push({ role: 'assistant', content: null, tool_calls }) - 1,
    finish_reason: null,
    model_seconds: 0,
    usage: null,
    policy_version: { start: null, end: null },
    tokens: null,
    commands: [],
  };
  trajectory.turns.push(turn);
  try {
    const done =
      input.kind === 'command'
        ? await runCommand(state, turn, seq, input, leftSeconds)
        : await useFiles(deps.files, seq, input, content);
    if ('answer' in done)
      trajectory.messages.push({ role: 'tool', tool_call_id: id, content: done.answer.observation });
    return done;
  } finally {
    deps.onTurn?.(trajectory);
  }
}

export const callId = (seq: number): string => `call_${seq}`;

function argumentsOf(input: Command | FileInput): Record<string, unknown> {
  const { kind, ...rest } = input;
  if (kind !== 'command') return rest;
  const { command, cwd, env } = input;
  return { command, ...(cwd === undefined ? {} : { cwd }), ...(env === undefined ? {} : { env }) };
}

async function runCommand(state: InputState, turn: Turn, seq: number, input: Command, leftSeconds: number) {
  const { step_timeout } = state.task.config;
  const { command, raw } = input;
  const timeout = Math.max(0.001, Math.min(input.timeout ?? step_timeout, step_timeout, leftSeconds));
  const options = { script: scriptOf(input), ...(raw === undefined ? {} : { rawBytes: raw }) };
  const done = await executeCommand(state, turn, command, timeout, options);
  if (done.submitted) return { submitted: done.submitted };
  const [record] = turn.commands;
  const answer = {
    seq,
    observation: done.observation,
    exit_code: record?.exit_code ?? null,
    seconds: record?.seconds ?? 0,
    note: record?.note ?? null,
  };
  if (raw === undefined) return { answer };
  const { content, bytes } = rawOutput(done.result, raw);
  return { answer: { ...answer, content }, content: bytes };
}

/** Returns the command with its folder and its variables. */
function scriptOf({ command, cwd, env = {} }: Command): string {
  const enter = cwd === undefined ? '' : `cd -- ${shellQuoted(cwd)} || exit\n`;
  return `${enter}${shellExports(env)}${command}`;
}

/** Returns head and tail of an output, together at most `limit` bytes. */
function rawOutput(
  { head, tail, outputBytes }: CommandResult,
  limit: number,
): { content: AnswerContent; bytes: Buffer } {
  if (tail === null && head.length <= limit)
    return { content: { bytes: head.length, head_bytes: null }, bytes: head };
  const end = tail ?? head;
  const first = head.subarray(0, Math.ceil(limit / 2));
  const last = end.subarray(Math.max(0, end.length - Math.floor(limit / 2)));
  return {
    content: { bytes: outputBytes, head_bytes: first.length },
    bytes: Buffer.concat([first, last]),
  };
}

async function useFiles(
  files: SandboxFiles,
  seq: number,
  input: FileInput,
  content: Buffer | null,
): Promise<Done> {
  const from = performance.now();
  const answerOf = (observation: string): SessionAnswer => ({
    ...{ seq, observation, exit_code: null, note: null },
    seconds: (performance.now() - from) / 1000,
  });
  if (input.kind === 'write') {
    const missing: InputError = { code: 'failed', message: 'the content has expired' };
    const error = content ? await files.write(input.path, content, input.mode) : missing;
    if (error) return { answer: { ...answerOf(error.message), error } };
    return { answer: answerOf(`wrote ${input.bytes} bytes`) };
  }
  const read = input.kind === 'read' ? await files.read(input.path, input.max_bytes) : await files.diff();
  if (!Buffer.isBuffer(read)) return { answer: { ...answerOf(read.message), error: read } };
  const answer = answerOf(`read ${read.length} bytes`);
  return { answer: { ...answer, content: { bytes: read.length, head_bytes: null } }, content: read };
}
