/** Test tools: a policy and a shell that follow a script, for tests of the loop. */

import { NO_LIMITS, type PolicyReply } from '@swefarm/policy';
import type { CommandResult, RunOptions, Shell } from '@swefarm/sandbox';
import { AgentConfig, type Message, PolicyConfig } from '@swefarm/shared';
import { bareInstance } from '@swefarm/testkit';
import type { AgentDeps, AgentTask, ContextOverflow, Policy } from '../../src/agent/agent.ts';
import type { Pause } from '../../src/agent/deadline.ts';
import { runMiniAgent } from '../../src/agent/loop.ts';
import { Endpoints } from '../../src/agent/policy/endpoints.ts';
import { openPolicy } from '../../src/agent/policy/policy.ts';

/** Pause of a policy that no trainer pauses. */
const NEVER_PAUSED: Pause = { paused: false, seconds: () => 0, onChange: () => () => undefined };
export const unfollowed = {
  pause: NEVER_PAUSED,
  stopped: NEVER_PAUSED,
  onRead: () => () => undefined,
  record: () => null,
  refresh: async () => undefined,
  [Symbol.dispose]: () => undefined,
};

export const START: Message[] = [{ role: 'user', content: 'hi' }];
export const never = new AbortController().signal;

export const SENTINEL = 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

export const scriptedInstance = bareInstance({
  ...{ instance_id: 'owner__project-1', problem_statement: 'The parser forgets {{braces}}.' },
});

export const scriptedTask = (config: Record<string, unknown> = {}): AgentTask => ({
  instance: scriptedInstance,
  config: AgentConfig.parse(config),
  workdir: '/testbed',
});

/** The real client of one rollout, whose policy is never paused. */
export const policyAt = (config: PolicyConfig, more: Partial<Parameters<typeof openPolicy>[1]> = {}) =>
  openPolicy(config, {
    apiKey: null,
    rolloutId: 'run.a__b-1.0',
    attempt: 1,
    limits: NO_LIMITS,
    followed: unfollowed,
    endpoints: new Endpoints(),
    log: { warn: () => undefined },
    ...more,
  });

/** An answer of the model: its text, a message, a whole reply or overflow, or a function that returns one; an Error is thrown. */
export type Answer =
  | string
  | Partial<Message>
  | { reply: Partial<PolicyReply> }
  | ContextOverflow
  | Error
  | ((signal: AbortSignal, messages: readonly Message[]) => Promise<PolicyReply | ContextOverflow>);

export const bash = (command: string): string => `I think.\n\`\`\`bash\n${command}\n\`\`\``;
export const SUBMIT = bash(`echo ${SENTINEL}`);
export const toolCalls = (...calls: [name: string, args: string][]): Partial<Message> => ({
  content: null,
  tool_calls: calls.map(([name, args], i) => ({
    id: `call_${i}`,
    type: 'function',
    function: { name, arguments: args },
  })),
});

export const replyOf = (content: string, more: Partial<PolicyReply> = {}): PolicyReply => ({
  message: { role: 'assistant', content },
  finish_reason: 'stop',
  usage: { prompt_tokens: 10, completion_tokens: 5 },
  prompt_token_ids: null,
  generation_token_ids: null,
  generation_log_probs: null,
  seconds: 0.01,
  endpoint: 'http://scripted',
  policy_version: { start: 'v1', end: 'v1' },
  ...more,
});

export type ScriptedPolicy = Policy & { requests: Message[][] };

/** Returns its answers in order, then repeats the last one. */
export function scriptedPolicy(answers: Answer[], config: Record<string, unknown> = {}): ScriptedPolicy {
  const requests: Message[][] = [];
  return {
    endpoint: 'http://scripted',
    config: PolicyConfig.parse({ urls: ['http://scripted'], model: 'scripted', ...config }),
    pause: NEVER_PAUSED,
    throughput: () => null,
    detokenize: async () => null,
    requests,
    async complete(messages, _tools, signal) {
      signal.throwIfAborted();
      requests.push(structuredClone([...messages]));
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      if (answer === undefined) throw new Error('the script is empty');
      if (answer instanceof Error) throw answer;
      if (typeof answer === 'function') return answer(signal, messages);
      if (typeof answer === 'string') return replyOf(answer);
      if ('context_overflow' in answer) return answer as ContextOverflow;
      if ('reply' in answer) return replyOf('', answer.reply as Partial<PolicyReply>);
      return replyOf('', { message: { role: 'assistant', content: '', ...(answer as Partial<Message>) } });
    },
  };
}

export type Outcome = Partial<CommandResult> & { output?: string };
export type ScriptedShell = Shell & { commands: string[]; options: RunOptions[] };

/** Answers commands by the script; unknown ones print nothing. An Error is thrown. */
export function scriptedShell(
  script: (command: string, options: RunOptions) => Outcome | Error | undefined,
): ScriptedShell {
  const commands: string[] = [];
  const options: RunOptions[] = [];
  return {
    commands,
    options,
    async run(command, runOptions) {
      commands.push(command);
      options.push(runOptions);
      const outcome = script(command, runOptions) ?? {};
      if (outcome instanceof Error) throw outcome;
      const head = Buffer.from(outcome.output ?? '');
      const { output: _, ...rest } = outcome;
      return { exitCode: 0, head, tail: null, outputBytes: head.length, seconds: 0, note: null, ...rest };
    },
    async [Symbol.asyncDispose]() {
      commands.length = 0;
    },
  };
}

/** `echo TEXT` prints TEXT; other commands print nothing. */
export const echoShell = (): ScriptedShell =>
  scriptedShell((command) => (command.startsWith('echo ') ? { output: `${command.slice(5)}\n` } : {}));

/** Plays a rollout of the real loop against the answers. */
export const play = (answers: Answer[], config: Record<string, unknown> = {}, shell = echoShell()) =>
  runMiniAgent(scriptedTask(config), depsOf(scriptedPolicy(answers), shell));

export const depsOf = (policy: Policy, shell: Shell, more: Partial<AgentDeps> = {}): AgentDeps => ({
  policy,
  shell,
  signal: new AbortController().signal,
  ...more,
});
