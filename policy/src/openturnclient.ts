import type { PolicyConfig } from '@swefarm/shared';
import { createChatClient } from './chatclient.ts';
import { openRenderer } from './template/renderer.ts';
import { TokenTurnClient } from './tokenclient.ts';
import type { TurnClient } from './turnclient.ts';
import { createTurnSampling, type TurnLimits } from './turnsampling.ts';

/** Throws UsageError `tokenizer` when the configured folder is not a tokenizer's. */
export async function openTurnClient(config: PolicyConfig, limits: TurnLimits): Promise<TurnClient> {
  const sampling = createTurnSampling(config, limits);
  if (config.token_mode !== 'token-in') return createChatClient(config, sampling);
  return new TokenTurnClient(config, sampling, await openRenderer(config));
}
