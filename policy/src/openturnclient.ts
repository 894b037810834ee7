import type { PolicyConfig } from '@swefarm/shared';
import { createChatClient } from './chatclient.ts';
import { openRenderer } from './template/renderer.ts';
import { TokenTurnClient } from './tokenclient.ts';
import type { TurnClient } from './turnclient.ts';
import { createTurnSampling, type TurnLimits } from './turnsampling.ts';

/** Opens the turn client for the token mode of `config`. Throws UsageError `tokenizer` if the tokenizer folder is invalid. */
export async function openTurnClient(config: PolicyConfig, limits: TurnLimits): Promise<TurnClient> {
  const sampling = createTurnSampling(config, limits);
  if (config.token_mode !== 'token-in') return createChatClient(config, sampling);
  return new TokenTurnClient(config, sampling, await openRenderer(config));
}
