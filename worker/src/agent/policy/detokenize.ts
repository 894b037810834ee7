/** The texts of token ids, by the endpoint's /detokenize: a failure message with them says more than numbers. */
import type { EndpointClient } from '@swefarm/shared';
import { z } from 'zod';

const TIMEOUT_MS = 3_000;
const Detokenized = z.object({ prompt: z.string() });

/** Null when the endpoint does not tell, for whatever reason: the message does without. */
export async function detokenize(
  client: EndpointClient,
  model: string,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<string[] | null> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const textOf = async (id: number): Promise<string> => {
    const response = await client.post('detokenize', [JSON.stringify({ model, tokens: [id] })], limited);
    return Detokenized.parse(await response.json()).prompt;
  };
  try {
    return await Promise.all(ids.map(textOf));
  } catch {
    return null;
  }
}
