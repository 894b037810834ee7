/** The forecast of a run at its submission, from the history of its instances and the slots of the live workers. */
import { z } from 'zod';

const seconds = z.number().nonnegative();

export const RunForecast = z.object({
  rollouts: z.number().int(),
  instances: z.number().int(),
  /** Instances without history, which count as the others of their family. */
  unknown: z.number().int(),
  /** Slots of the workers that claim, also those in use; 0: no worker is live. */
  slots: z.number().int(),
  /** From the submission to the last result, if all slots are free; null: no worker is live, or no rollout of the agent is known. */
  seconds: z
    .object({
      expected: seconds,
      /** Bounds of nine in ten simulated runs. */
      low: seconds,
      high: seconds,
      /** No order is faster: the larger of sum / slots and the longest rollout, on average. */
      ideal: seconds,
    })
    .nullable(),
  /** Sum over all rollouts; null: no rollout of the agent is known. */
  tokens: z.object({ prompt: z.number(), completion: z.number() }).nullable(),
  /** US dollars; null: the price is unknown, or the tokens are. */
  cost: z.number().nullable(),
});
export type RunForecast = z.infer<typeof RunForecast>;
