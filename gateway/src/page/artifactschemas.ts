/** Schemas of trajectories and artifacts in the JSON of `trajectories/src/output/plainjson.ts`: bytes are base64. */
import {
  CommandRecord,
  ExitStatus,
  InstalledAgent,
  LineKind,
  Message,
  Report,
  RewardFacts,
  Sampling,
  Seconds,
} from '@swefarm/shared';
import { z } from 'zod';

const TokensBody = z.object({
  prefix_length: z
    .number()
    .int()
    .meta({ description: 'tokens of earlier turns that this prompt begins with' }),
  prompt_suffix: z.array(z.number().int()),
  generation: z.array(z.number().int()),
  log_probs: z.array(z.number().nullable()),
  routed_experts: z
    .object({
      dtype: z.enum(['int8', 'uint8', 'int16', 'uint16', 'int32']),
      layers: z.number().int(),
      top_k: z.number().int(),
      start: z.number().int(),
      rows: z.string().meta({ description: 'base64, little-endian' }),
    })
    .optional(),
});

const TurnBody = z.object({
  message: z.number().int().meta({ description: "index in messages of the assistant's message" }),
  finish_reason: z.string().nullable(),
  model_seconds: z.number(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullable(),
  policy_version: z.object({ start: z.string().nullable(), end: z.string().nullable() }),
  asked: z.object({ max_tokens: z.number().nullable().optional(), seed: z.number().optional() }).optional(),
  endpoint: z.string().optional(),
  request: z
    .object({
      dialect: z.string(),
      matched: z.string().meta({ description: 'continued, or why the prompt was rendered whole' }),
      repaired: z.literal(true).optional(),
      repeated: z.number().int().optional(),
      delivered: z.boolean(),
    })
    .optional()
    .meta({ description: 'how an agent that comes as a program asked' }),
  spans: z.array(z.object({ version: z.string().nullable(), tokens: z.number().int() })).optional(),
  tokens: TokensBody.nullable(),
  commands: z.array(CommandRecord),
});

const Tools = z.array(
  z.object({
    type: z.literal('function'),
    function: z.object({
      name: z.string(),
      description: z.string(),
      parameters: z.record(z.string(), z.unknown()),
    }),
  }),
);

const LineBody = z.object({
  id: z.string(),
  kind: LineKind,
  from: z
    .object({ line: z.string(), turns: z.number().int(), messages: z.number().int() })
    .nullable()
    .meta({ description: 'the line that this line continues, and how many of its turns and messages' }),
  masked: z.string().nullable().meta({ description: 'why the turns are not trained on' }),
  tools: Tools.optional(),
  messages: z.array(Message),
  turns: z.array(TurnBody),
  contiguous: z.boolean().optional(),
});

export const TrajectoryBody = z.object({
  format: z.literal('swefarm-trajectory-1'),
  token_mode: z.enum(['echo', 'token-in', 'text']).nullable(),
  model: z.string().nullable(),
  endpoint: z.string().nullable(),
  sampling: Sampling.optional(),
  tools: Tools.optional(),
  messages: z.array(Message),
  turns: z.array(TurnBody),
  exit_status: ExitStatus.nullable(),
  limit: z.enum(['context_limit', 'max_sequence_tokens', 'max_tokens', 'endpoint']).optional(),
  contiguous: z.boolean().optional(),
  lines: z
    .array(LineBody)
    .optional()
    .meta({ description: 'of an agent that comes as a program, beside the main line' }),
  line: z.string().optional().meta({ description: 'id of the main line; absent: L1' }),
});

/** A turn on the page, which requests token ids separately. */
export const PageTurnBody = TurnBody.omit({ tokens: true }).extend({
  token_count: z.number().int().nullable(),
});

export const PageLineBody = LineBody.extend({ turns: z.array(PageTurnBody) });

export const ArtifactBody = z.object({
  format: z.literal('swefarm-artifact-1'),
  rollout_id: z.string(),
  attempt: z.number().int(),
  claim: z.string().optional(),
  software_version: z.string().optional(),
  instance_id: z.string(),
  trajectory: TrajectoryBody.nullable(),
  patch: z.string().nullable(),
  report: Report.nullable(),
  test_log: z.string().nullable(),
  eval_script: z.string().nullable(),
  failure_detail: z.string().nullable(),
  kept: z.object({ facts: RewardFacts, seconds: Seconds, agent: InstalledAgent.optional() }).optional(),
  outputs: z
    .array(
      z.object({
        name: z.string(),
        content: z.string().meta({ description: 'text, or base64 of a file that is no text' }),
        bytes: z.number().int(),
      }),
    )
    .optional()
    .meta({ description: 'what an agent that comes as a program printed and wrote' }),
});
