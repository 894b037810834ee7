/** Joins the recorder of a rollout to its policy, its limits and its card. */
import { type Continued, expertModeOf } from '@swefarm/policy';
import type { PolicyLine, RecorderOptions } from '@swefarm/recorder';
import { effectiveSampling } from '@swefarm/shared';
import type { InstalledDeps, InstalledTask } from './task.ts';

/** Returns the options of the recorder, without the card and the key. */
export function recorderOptions(
  { config }: Pick<InstalledTask, 'config'>,
  { policy, signal, beforeTurn, onTurn }: Pick<InstalledDeps, 'policy' | 'signal' | 'beforeTurn' | 'onTurn'>,
): Omit<RecorderOptions, 'card' | 'key'> {
  const { config: asked, pause, endpoint } = policy;
  const { cost_limit: dollars } = config;
  return {
    openLine(after): PolicyLine {
      // The recorder returns the points of this policy's replies.
      const ask = policy.openLine(after as Continued | undefined);
      return { complete: ({ seedTurn, ...request }) => ask({ ...request, answer: seedTurn }) };
    },
    async countTokens(messages, tools, signal) {
      const count = await policy.countTokens(messages, tools, signal);
      if (count === null) throw new Error('only the server knows the number of tokens');
      return count;
    },
    policy: {
      requireTokens: asked.require_tokens,
      experts: expertModeOf(asked),
      tokenMode: asked.token_mode,
    },
    limits: {
      turns: config.step_limit,
      answerTokens: config.answer_limit,
      cost: dollars !== null && asked.price ? { most: dollars, price: asked.price } : null,
      malformedInARow: config.format_limit,
      wholePrompts: config.whole_prompt_limit,
    },
    trainLines: config.train_lines,
    trajectory: {
      format: 'swefarm-trajectory-1',
      token_mode: asked.token_mode,
      model: asked.model,
      endpoint,
      sampling: effectiveSampling(asked),
      messages: [],
      turns: [],
      exit_status: null,
    },
    pausedSeconds: () => pause.seconds(),
    ...(beforeTurn ? { beforeTurn } : {}),
    ...(onTurn ? { onTurn } : {}),
    signal,
  };
}
