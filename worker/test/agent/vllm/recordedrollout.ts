/** A rollout whose agent comes as a program: the worker's policy asks a real vLLM for the recorder, and a test asks the recorder. */
import type { RecorderOptions } from '@swefarm/recorder';
import { KEY } from '@swefarm/recorder/test/options.ts';
import { RECORDED_CARD } from '@swefarm/recorder/test/requests/recordedlines.ts';
import { AgentConfig, PolicyConfig } from '@swefarm/shared';
import { recorderOptions } from '../../../src/agent/installed/recording.ts';
import { policyAt } from '../scripted.ts';
import type { Guide, Wanted } from './guide.ts';

const NO_LIMIT = 100_000;
let rollouts = 0;

/** Opens the policy of a rollout; dispose it at the end. `answers`: what the server sampled. `next`: what each answer may be. */
export function openRollout(guide: Guide, next: () => Wanted) {
  const rolloutId = `run.a__b-1.${rollouts++}`;
  const config = PolicyConfig.parse({
    ...{ urls: [guide.url], model: 'tiny', token_mode: 'token-in', require_tokens: true },
    sampling: { temperature: 1, max_tokens: 4096 },
    extra_body: { chat_template_kwargs: { enable_thinking: true } },
  });
  const policy = policyAt(config, { rolloutId });
  const agent = AgentConfig.parse({ step_limit: NO_LIMIT, format_limit: NO_LIMIT });
  const options: RecorderOptions = {
    ...recorderOptions({ config: agent }, { policy, signal: new AbortController().signal }),
    ...{ card: RECORDED_CARD, key: KEY },
  };
  const limits = { ...options.limits, wholePrompts: NO_LIMIT };
  return {
    answers: guide.follow(rolloutId, next),
    options: { ...options, limits },
    [Symbol.dispose]: () => policy[Symbol.dispose](),
  };
}
